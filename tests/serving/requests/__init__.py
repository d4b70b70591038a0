"""How the process answers, whoever asks and however often."""
