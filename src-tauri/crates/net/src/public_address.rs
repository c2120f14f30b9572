//! Which addresses lie in the public internet. A program that lets others name an address must not lend them this
//! computer's network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is of the public internet, by IANA's registries of special addresses. Addresses that stand for
/// another one count as that.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        // "This network", and what is reserved, broadcast included.
        || a == 0
        || a >= 240
        // Carriers' own (RFC 6598), protocol assignments, 6to4 relays, measurements (RFC 2544).
        || (a == 100 && b & 0xC0 == 64)
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && b & 0xFE == 18);
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match parts {
        // Mapped, and of NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0xFFFF, high, low] | [0x64, 0xFF9B, 0, 0, 0, 0, high, low] => {
            is_public_v4(v4(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Protocol assignments with Teredo, and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xDB8,
        [0x3FFF, second, ..] if second < 0x1000 => false,
        // Global unicast.
        [first, ..] => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: bool, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn special_addresses_are_not_public() {
        let special =
            ["127.0.0.1", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254"];
        check(false, &special);
        check(false, &["0.0.0.0", "0.1.2.3", "100.64.0.1", "100.127.255.255", "192.0.0.8", "198.18.0.1"]);
        check(false, &["198.19.255.255", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255"]);
        check(false, &["::", "::1", "fe80::1", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "::7f00:1"]);
        check(false, &["::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "64:ff9b:1::1"]);
        check(false, &["2002:7f00:1::", "2002:c0a8:101::1", "2001::1", "2001:db8::1", "100::1", "3fff::1"]);
    }

    #[test]
    fn others_are() {
        check(true, &["8.8.8.8", "1.1.1.1", "100.63.0.1", "100.128.0.1", "172.32.0.1", "198.20.0.1"]);
        check(true, &["2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"]);
        check(true, &["2002:808:808::1", "2a00::1"]);
    }
}
