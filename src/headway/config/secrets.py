"""Addresses as they may be shown: without the password that they may hold."""

import re

_IN_LOGIN = re.compile(r"(://[^/?#@:]*):[^/?#]*@")
_IN_QUERY = re.compile(r"([?&](?:password|passwd|pwd|sslpassword)=)[^&#]*", re.IGNORECASE)


def without_password(url: str) -> str:
    """The address, stars where its password is. Works for anything that is written like an address."""
    return _IN_QUERY.sub(r"\1***", _IN_LOGIN.sub(r"\1:***@", url))
