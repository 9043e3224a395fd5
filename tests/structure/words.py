"""Phrases that stop a reader, and where they are looked for: in pages, in comments, in docstrings, and in
the texts that users see. Most were written here once; each has the plain words for it.
"""

import re

# (what is found, what to write, why it stops a reader). \s stands for any white space, line ends too.
PHRASES = (
    (r"\b(?:is|are|was|were) had\b", "is read, lies in, get it with", "to have is no action"),
    (r"\bhad all the same\b", "can still be read", "two words of feeling for one of fact"),
    (r"\bthat there (?:is|are) not\b", "that does not exist, unknown", "the verb says nothing"),
    (r"\b(?:tells?|told) of\b", "describes, names, reports, says", "files and functions do not tell stories"),
    (r"\btold as lost\b|\bwhich was told\b", "reported as lost", "nobody is there who tells"),
    (r"\bin thought\b", "say what is compared with what", "a program does not think"),
    (r"\b[Aa]s it is made(?:[:,]| it\b)", "by default", "a value is not made by anybody"),
    (r"\bthat nobody named\b", "without a name, that were not named", "the subject is missing"),
    (r"\bby nobody\b", "unnoticed, not", "a passive whose actor is nobody"),
    (
        r"\bof a stranger(?:'s)?\b|\ba stranger's\b",
        "untrusted, from an untrusted source",
        "the field's word is untrusted",
    ),
    (r"\bthat is it\.", "nothing more is stored", "it is what?"),
    (r"\bexpects something of it\b", "say which option has which effect", "something is nothing"),
    (r"\bthat has no \w+izes\b", "that it cannot restore", "a verb in the place of a noun"),
    (r"\b(?:leads to it|best), where it is\b", "if it is the best", "an ellipsis that has to be guessed"),
    (r"\b(?:converts?|from) each (?:format )?to each\b", "between all formats", "each of what?"),
    (r"\bin the same words for every\b", "as every command does", "words are not what is the same"),
    (r"\bOf what (?:it|read|was)\b", "begin with the subject", "the sentence has no subject"),
    (
        r"\b(?:of it|file|text|code|dtype|name|level|rate|state|configuration) is none\b(?! of)",
        "is not one, is refused, does not exist",
        "none of what?",
    ),
    (r", and what the save failed with\b", "or the error that the save failed with", "two things under one verb"),
    (r"\bfinds another unfinished\b", "if another save is unfinished", "a save finds nothing"),
    (r"\bas a list is\b", "truthy if", "a comparison in the place of a fact"),
    (r"\b(?:tensor|region|name)s? that it fits\b|\bthat one of them fits\b", "that matches", "a pattern matches"),
    (r"\bas coo alone\b", "only as coo", "alone with whom?"),
    (r"\bname no file name\b", "get this file's name", "one word as noun and verb"),
    (
        r"\bof which these are the elements\b",
        "the elements restored from",
        "a relative clause within a relative clause",
    ),
)

# Words that are right now and then, and were habits.
HABITS = (
    (r"\b[Mm]end(?:s|ed|ing)?\b", "repair", "the field's word is repair"),
    (r"\b[Ww]hoever\b", "anybody who, whichever", "it begins a sentence that has to be read twice"),
    (r"\b[Ii]n front of\b", "before", "places in a file are before and after each other"),
    (
        r"\bstands? (?:behind|beside|in front)\b|\bone behind the other\b",
        "follows, is next to, precedes",
        "bytes do not stand",
    ),
    (r"(?<!there\s)\b(?:is|are|was|were) none[,;.](?! of)", "is not one, does not exist", "none of what?"),
    (r"\b[Ss]t(?:ands?|ood) (?!for\b|in\b|out\b|still\b)", "is, lies in", "bytes and names do not stand"),
    (
        r"(?<!left\s)(?<!leave\s)(?<!leaves\s)\bbehind (?:it|them|that|these|those|the (?!interface))",
        "after, beyond",
        "what comes later in a file is after it",
    ),
    (r"\bOf\b", "begin with the subject", "who reads it does not know yet of what is spoken"),
)

CODE = re.compile(
    r"```.*?^ *```|`[^`\n]*`|\]\([^)]*\)|<!-- (\w+): written by.*?<!-- \1 ends -->", re.DOTALL | re.MULTILINE
)
COMMENT = re.compile(r"//[/!]?<? ?")
LITERALS = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')


def _blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def _page(text):
    """(number of the line before the first, text) of each piece: here all of it, without code."""
    yield 0, CODE.sub(_blank, text)


def _docstrings(text):
    """All of a module: what it says in code is not like these phrases. Comments run on over lines."""
    yield 0, re.sub(r"``?[^`\n]*``?", _blank, re.sub(r"^( *)#:?", r"\1 ", text, flags=re.MULTILINE))


def _comments(text):
    """Comments, those on lines that follow each other as one piece."""
    begin, lines = 0, []
    for number, line in enumerate([*text.split("\n"), ""]):
        mark = COMMENT.search(line)
        if mark is not None and line.count('"', 0, mark.start()) % 2 == 0:
            begin = begin if lines else number
            lines.append(re.sub(r"`[^`]*`", _blank, line[mark.end() :]))
        elif lines:
            yield begin, "\n".join(lines)
            lines = []


def _messages(text):
    """Texts of more than a word between quotation marks, those that follow each other as one piece."""
    for match in LITERALS.finditer(text):
        if " " in match[0]:
            yield (
                text.count("\n", 0, match.start()),
                re.sub(r'"(\s*)"', lambda gap: "\n" * gap[1].count("\n"), match[0]),
            )


def texts(root):
    """(path, its pieces) of all that is looked into."""
    pages = [(path, _page) for path in (*root.glob("*.md"), *root.glob("docs/**/*.md"), root / "bench/README.md")]
    for folder, ending, pieces in (
        ("include", "*.h", _comments),
        ("src", "*.h", _comments),
        ("src", "*.cc", _comments),
        ("src", "*.cc", _messages),
        ("tests", "*.h", _comments),
        ("tests", "*.cc", _comments),
        ("bench", "*.h", _comments),
        ("bench", "*.cc", _comments),
        ("python", "*.py", _docstrings),
    ):
        pages += [(path, pieces) for path in (root / folder).rglob(ending)]
    for path, pieces in sorted(pages, key=lambda page: page[0]):
        name = path.relative_to(root).as_posix()
        if path.is_file():
            yield name, pieces(path.read_text(encoding="utf-8"))


def phrases(root):
    """Where a text has one of PHRASES, or of HABITS."""
    rules = [(re.compile(found.replace(" ", r"\s+")), instead) for found, instead, _ in PHRASES + HABITS]
    found = []
    for name, pieces in texts(root):
        for begin, text in pieces:
            for rule, instead in rules:
                for match in rule.finditer(text):
                    words = " ".join(match[0].split())
                    line = begin + text.count("\n", 0, match.start()) + 1
                    found.append(f"{name}:{line}: '{words}': write {instead}")
    return found
