"""Read the script of commands: sections of commands, each with what it must answer.

    ## section                    a new namespace, with the Leases demo and other
    $ get lease demo -o name      without "kubectl"; VARIABLE=value may precede, and "until":
                                  end it once it has printed what it must; > FILE may follow
    exit 1                        its exit status; 0 if there is no such line
    out  TEXT                     its output contains the text; any run of blanks is one blank
    err  TEXT                     its error output contains the text
    is   TEXT                     its output is the text
    not  TEXT                     neither contains the text

`<namespace>` stands for the section's namespace.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

SCRIPT = Path(__file__).parent / "commands.txt"
MANIFESTS = Path(__file__).parent / "manifests"


class Command(msgspec.Struct):
    line: str
    status: int = 0
    out: list[str] = []
    err: list[str] = []
    whole: list[str] = []
    absent: list[str] = []


class Section(msgspec.Struct):
    name: str
    commands: list[Command] = []


def sections() -> list[Section]:
    found: list[Section] = []
    for line in SCRIPT.read_text().splitlines():
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "##":
            found.append(Section(rest))
        elif word == "$":
            found[-1].commands.append(Command(rest))
        elif word == "exit":
            found[-1].commands[-1].status = int(rest)
        elif word in ("out", "err", "is", "not"):
            command = found[-1].commands[-1]
            kinds = {"out": command.out, "err": command.err, "is": command.whole}
            kinds.get(word, command.absent).append(rest)
        elif word and word != "#":
            raise ValueError(f"{SCRIPT.name} has a line that is nothing: {line}")
    return found
