"""IP addresses as terms: 32 hexadecimal digits, whose order is that of Lucene's points.

org.elasticsearch.common.network.InetAddresses
org.apache.lucene.document.InetAddressPoint: an address of IPv4 is stored as `::ffff:a.b.c.d`.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

BITS = 128
GREATEST = (1 << BITS) - 1

_MAPPED = 0xFFFF << 32  # the number of ::ffff:0.0.0.0


def number_of(text: str) -> int:
    """Return the number of an address of IPv4 or IPv6.

    Raises:
        ValueError: it is no address.
    """
    if not text.isascii() or "%" in text:
        raise ValueError(f"{text!r} is no IP address")
    try:
        address = ip_address(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is no IP address") from error
    return int(address) + _MAPPED if isinstance(address, IPv4Address) else int(address)


def network_of(text: str) -> tuple[int, int]:
    """Return the first and the last address of a network in CIDR notation, such as `10.0.0.0/8`.

    Raises:
        ValueError: it is no network.
    """
    match = re.fullmatch(r"([^/]*)/([+-]?[0-9]{1,9})/*", text)
    if not match:
        raise ValueError(f"{text!r} is no network of IP addresses")
    number, length = number_of(match[1]), int(match[2])
    is_mapped = number >> 32 == _MAPPED >> 32
    if is_mapped and ":" in match[1]:
        raise ValueError(f"{text!r} has an address of IPv4 in the notation of IPv6")
    if not 0 <= length <= (32 if is_mapped else BITS):
        raise ValueError(f"{text!r} has a prefix of {length} bits")
    others = (1 << (32 if is_mapped else BITS) - length) - 1
    return number & ~others, number | others


def term_of(number: int) -> str:
    """Return the term of an address."""
    return f"{number:032x}"


def printed_address(number: int) -> str:
    """Return an address as Java prints it (`InetAddress.getHostAddress`)."""
    if number >> 32 == _MAPPED >> 32:
        return str(IPv4Address(number & 0xFFFFFFFF))
    groups = IPv6Address(number).exploded.split(":")
    return ":".join(f"{int(group, 16):x}" for group in groups)
