"""The exceptions of bytes that are no JSON of the expected type. msgspec has one of its own for most of them, but
not for bytes that are no UTF-8 and not for values that are nested too deeply."""

import msgspec

CORRUPT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
