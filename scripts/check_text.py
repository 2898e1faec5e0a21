#!/usr/bin/env python3
"""Checks the text files that standard input names, one a line, and exits with 1 on any finding.

No trailing whitespace, a final newline, and lines of at most 100 characters, 120 in prose. Tables,
links and preformatted lines of prose may be longer. Binary files and recorded data are not checked.

Documents, examples, public headers and the messages of the program do without the phrases of
PHRASES. A line with `allow-phrase: P`, or the line after one, may have the phrase P: as a comment,
<!-- allow-phrase: nobody --> or // allow-phrase: nobody.
"""

import re
import sys
from pathlib import Path

CODE_COLUMNS = 100
PROSE_COLUMNS = 120
PROSE = {".md", ".txt"}
UNCHECKED = (
    ".clang-tidy",
    "LICENSE",
    "bench/results/",
    "docs/configuration.md",  # written by the program
    "docs/pictures/",
    "examples/identity/token",
    "examples/rules/traces/",
    "tests/corpus/",
)

# ---- phrases -------------------------------------------------------------------------------------

# Where all of a file is for readers, as in any README.md; of C++ there, the comments and the texts.
DOCUMENTS = ("CHANGELOG.md", "CONTRIBUTING.md", "docs/", "examples/", "include/", "packaging/")
MESSAGES = ("src/",)  # where texts are: what the program says

# What to look for, and what to write. A blank stands for any white space, also the end of a line.
PHRASES = (
    # The thing that acts is the subject.
    (r"whoever", "the thing that acts: the client, the operator"),
    (r"somebody", "the thing that acts: a client, a user"),
    (r"nobody", "the thing that is absent: no client, no worker"),
    (r"(?:those|one) who", "clients that, users that"),
    (r"(?<=[;:,]) who|(?<=[.!?]) who(?! is asking)|and who", "the thing that acts: a client that"),
    (r"those that", "the noun: requests that, files that"),
    (r"(?<!(?:he|er|ly|st|xt)\s)one that", "the noun: a connection that"),  # the one, the last one
    (r"what was", "the noun: the usage, the request"),
    # One word, one meaning.
    (r"questions?", "request"),
    (r"(?:an|the|its|their|our|each|every|this|that|of|with|without) answers?", "response"),
    (r"(?-i:heads?)(?! -n)", "headers"),
    (r"(?<!connection\s)refus(?:e|es|ed|al|als|ing)", "reject, rejected, rejection"),
    (r"turn(?:s|ed|ing)? away", "reject"),
    (r"(?:is|are|was|were|be) held(?! by)|held (?:requests?|in|back|instead)", "queued"),
    (r"pass(?:es|ed|ing)? on", "forward, allow"),
    (r"debts?|ow(?:e|es|ed)", "usage, used"),
    (r"(?:limits?|rules?) (?:is|are|was|were) full", "exceeded"),
    (r"under way", "in flight"),
    (r"proven", "authenticated"),
    (r"le(?:ft|ave|aves|aving) alone", "eject, ejected"),
    (r"only tells?", "shadow (log only)"),
    (r"(?:take|takes|took|taken|taking) over", "reload"),
    (r"(?:read|reads|open|opens|opened) anew", "reload, reopen"),
    (r"doors?", "listener"),
    (r"vouch(?:es|ed|ing)?(?: for)?", "CA: signed by"),
    (r"authorities", "CA certificates"),
    (r"(?:time|when) to come back", "`Retry-After`, `retry_after`"),
    (r"asks? too much", "over its limit"),
    (r"no route leads", "no matching route"),
)

COMPILED = tuple(
    (re.compile(rf"(?<!\w)(?:{phrase})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE), instead)
    for phrase, instead in PHRASES
)
ALLOWED = re.compile(r"allow-phrase: ([\w ]+\w)")
# Found from left to right: a quote in a comment begins no text, and // in a text no comment. Texts
# that the compiler joins are one.
PIECES = re.compile(
    r'(?P<raw>R"(?P<mark>\w*)\(.*?\)(?P=mark)")'
    r'|(?P<text>"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*)'
    r"|(?P<comment>//[^\n]*)"
    r"|(?<!\w)'(?:[^'\\\n]|\\.)+'",  # 10'000 is no character
    re.DOTALL,
)


def blanked(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def is_message(literal: str) -> bool:
    """Names have no blanks; paths of headers and formats of numbers are none for readers either."""
    return re.search(r"[a-z] |\s[a-z]", literal) is not None


def read_by_people(code: str, comments: bool) -> str:
    """The code with blanks for all that no reader of messages, or of comments, gets to see."""
    kept = []
    end = 0
    for piece in PIECES.finditer(code):
        kept.append(blanked(code[end : piece.start()]))
        end = piece.end()
        if piece["comment"] is not None:
            kept.append("  " + piece[0][2:] if comments else blanked(piece[0]))
        elif (piece["raw"] or piece["text"]) and is_message(piece[0]):
            kept.append(re.sub(r'(?<!\\)"', " ", piece[0]))
        else:
            kept.append(blanked(piece[0]))
    return "".join(kept) + blanked(code[end:])


def does_without_phrases(path: str) -> bool:
    if path.startswith(DOCUMENTS) or path.endswith("README.md"):
        return True
    is_test = re.search(r"_(test|bench|fixture)\.(cc|h)$", path)
    return path.startswith(MESSAGES) and path.endswith((".cc", ".h", ".yaml")) and not is_test


def phrases_in(path: str, text: str):
    """Line, column, phrase and what to write instead, in the order of the text."""
    if not does_without_phrases(path):
        return
    lines = text.split("\n")
    visible = text
    if path.endswith((".cc", ".h")):
        visible = read_by_people(text, comments=path.startswith(DOCUMENTS))
    found = []
    for pattern, instead in COMPILED:
        for match in pattern.finditer(visible):
            start = match.start() + len(match[0]) - len(match[0].lstrip(" \n,;:.!?"))
            phrase = " ".join(match[0].lstrip(" \n,;:.!?").split())
            line = visible.count("\n", 0, start)
            column = start - (visible.rfind("\n", 0, start) + 1)
            near = "\n".join(lines[max(line - 1, 0) : line + 1])
            allowed = {one.lower() for one in ALLOWED.findall(near)}
            if phrase.lower() not in allowed:
                found.append((line + 1, column + 1, phrase, instead))
    yield from sorted(found)


# ---- lines ---------------------------------------------------------------------------------------


def may_be_long(line: str, prose: bool) -> bool:
    if "://" in line:
        return True
    return prose and (line.lstrip().startswith("|") or line.startswith("    "))


def findings(path: Path, text: str):
    prose = path.suffix in PROSE
    columns = PROSE_COLUMNS if prose else CODE_COLUMNS
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip():
            yield number, "trailing whitespace"
        if len(line) > columns and not may_be_long(line, prose):
            yield number, f"{len(line)} characters, more than {columns}"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"


# ---- files ---------------------------------------------------------------------------------------


def text_of(name: str):
    content = Path(name).read_bytes()
    return None if b"\0" in content else content.decode("utf-8", errors="replace")


def complaints(name: str, text: str):
    for number, what in findings(Path(name), text):
        yield f"{name}:{number}: {what}"
    for line, column, phrase, instead in phrases_in(name, text):
        yield f"{name}:{line}:{column}: '{phrase}'; write {instead}"


def main() -> int:
    found = []
    for name in sys.stdin.read().splitlines():
        text = None if name.startswith(UNCHECKED) else text_of(name)
        if text is not None:
            found += complaints(name, text)
    if found:
        print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
