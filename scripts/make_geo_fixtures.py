#!/usr/bin/env python3
"""Writes the small GeoIP databases that tests read, or checks that they are what it would write.

make_geo_fixtures.py FOLDER            writes them
make_geo_fixtures.py FOLDER --check    exits with 1 if one of them differs

MaxMind's format: a binary tree over the bits of an address, whose leaves point at records in a data
section, then a description of the whole. Addresses are those set aside for documentation.
"""

import ipaddress
import sys
from pathlib import Path

SEPARATOR = bytes(16)
MARKER = b"\xab\xcd\xefMaxMind.com"
TEXT, UINT16, UINT32, MAP, UINT64, ARRAY = 2, 5, 6, 7, 9, 11


class Number:
    """An integer of one of the sizes that the format tells apart."""

    def __init__(self, kind: int, value: int):
        self.kind = kind
        self.value = value


def control(kind: int, size: int) -> bytes:
    assert size < 29 or 29 <= size < 285
    length, more = (size, b"") if size < 29 else (29, bytes([size - 29]))
    if kind <= 7:
        return bytes([kind << 5 | length]) + more
    return bytes([length, kind - 7]) + more


def encoded(value) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        return control(TEXT, len(text)) + text
    if isinstance(value, Number):
        digits = value.value.to_bytes((value.value.bit_length() + 7) // 8, "big")
        return control(value.kind, len(digits)) + digits
    if isinstance(value, list):
        return control(ARRAY, len(value)) + b"".join(map(encoded, value))
    members = b"".join(encoded(name) + encoded(member) for name, member in value.items())
    return control(MAP, len(value)) + members


def bits_of(network, ip_version: int) -> str:
    """The first bits of its addresses; in a tree for IPv6, IPv4 lies under 96 zeros."""
    bits = f"{int(network.network_address):0{network.max_prefixlen}b}"[: network.prefixlen]
    return "0" * 96 + bits if ip_version == 6 and network.version == 4 else bits


def tree_of(records: dict, ip_version: int) -> list:
    """Nodes as pairs, each side None, the number of a node, or a record in a tuple."""
    nodes = [[None, None]]
    for network, record in records.items():
        bits = bits_of(ipaddress.ip_network(network), ip_version)
        node = 0
        for bit in map(int, bits[:-1]):
            if nodes[node][bit] is None:
                nodes.append([None, None])
                nodes[node][bit] = len(nodes) - 1
            node = nodes[node][bit]
        nodes[node][int(bits[-1])] = (record,)
    return nodes


def packed(left: int, right: int, record_size: int) -> bytes:
    if record_size == 28:
        middle = (left >> 24) << 4 | right >> 24
        low = 0xFFFFFF
        return (left & low).to_bytes(3, "big") + bytes([middle]) + (right & low).to_bytes(3, "big")
    size = record_size // 8
    return left.to_bytes(size, "big") + right.to_bytes(size, "big")


def database(records: dict, kind: str, ip_version: int, record_size: int) -> bytes:
    nodes = tree_of(records, ip_version)
    data = b""
    tree = b""
    for node in nodes:
        sides = []
        for side in node:
            if side is None:
                sides.append(len(nodes))  # nothing is known
            elif isinstance(side, int):
                sides.append(side)
            else:
                sides.append(len(nodes) + len(SEPARATOR) + len(data))
                data += encoded(side[0])
        tree += packed(*sides, record_size)
    description = {
        "binary_format_major_version": Number(UINT16, 2),
        "binary_format_minor_version": Number(UINT16, 0),
        "build_epoch": Number(UINT64, 1_700_000_000),
        "database_type": kind,
        "description": {"en": "Sluice test data"},
        "ip_version": Number(UINT16, ip_version),
        "languages": ["en"],
        "node_count": Number(UINT32, len(nodes)),
        "record_size": Number(UINT16, record_size),
    }
    return tree + SEPARATOR + data + MARKER + encoded(description)


def country(code: str) -> dict:
    return {"country": {"iso_code": code}}


def asn(number: int, kind: int = UINT32) -> dict:
    return {"autonomous_system_number": Number(kind, number)}


def fixtures() -> dict:
    countries = {
        "192.0.2.0/24": country("DE"),
        "198.51.100.0/25": country("FR"),
        "203.0.113.0/24": {"continent": {"code": "OC"}},
        "203.0.114.0/24": {"country": {"iso_code": "too long"}},
        "2001:db8:1::/48": country("JP"),
    }
    networks = {
        "192.0.2.0/24": asn(64500),
        "198.51.100.0/24": asn(64501, UINT16),
        "203.0.113.0/24": {"autonomous_system_number": "64502"},
        "2001:db8:1::/48": asn(4_200_000_000),
    }
    only_v4 = {"192.0.2.0/24": asn(64510) | country("AT")}
    return {
        "country.mmdb": database(countries, "Test-Country", 6, 28),
        "asn.mmdb": database(networks, "Test-ASN", 6, 24),
        "both-v4.mmdb": database(only_v4, "Test-Both", 4, 32),
    }


def main() -> int:
    folder = Path(sys.argv[1])
    differing = 0
    for name, content in fixtures().items():
        path = folder / name
        if "--check" not in sys.argv[2:]:
            path.write_bytes(content)
        elif not path.exists() or path.read_bytes() != content:
            print(f"{path} is not what this script writes")
            differing += 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
