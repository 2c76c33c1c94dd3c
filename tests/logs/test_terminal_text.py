"""What a terminal may be shown of the lines of programs."""

import pytest

from tfyard.logs.terminal_text import clean, clean_lines


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b"\x1b[2J\x1b[31mred\x1b[0m\x07\x1b[5;3H", "\x1b[31mred\x1b[0m"),
        (b"\xff\xfe caf\xc3\xa9", "\ufffd\ufffd café"),
        (b"10%\r50%\r100%\r", "100%"),
        (b"\x1b]0;a title\x07text", "text"),
        (b"\x1b]8;;http://a\x1b\\a link\x1b]8;;\x1b\\.", "a link."),
        (b"before\x1b]52;c;aGk=", "before"),
        (b"\x1bPq#0\x1b\\\x1b_G;x\x1b\\pictures", "pictures"),
        ("\x9b2J\x9d0;title\x9ceight bits".encode(), "eight bits"),
        (b"\x1b(0lines\x1b(B", "lines"),
        (b"\x1b[>4;2mkeys\x1b[?25l\x1b", "keys"),
        (b"a\tb \x1b[38:2:1:2:3mc", "a\tb \x1b[38:2:1:2:3mc"),
    ],
)
def test_what_would_change_the_terminal_is_taken_out_whole_and_colours_stay(line: bytes, shown: str) -> None:
    assert clean(line) == shown
    assert clean_lines(b"plain\n" + line + b"\nplain") == f"plain\n{shown}\nplain"
