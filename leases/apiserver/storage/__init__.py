"""What is stored and how it becomes durable: store, journal, group commit. Imports codec."""
