//! Which program listens on a TCP port. Known on Linux, and only of programs of the same user.

/// Where Linux lists sockets: IPv4 and IPv6.
const SOCKETS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// State of a socket that listens, as Linux writes it.
const LISTENING: &str = "0A";

/// Name of the program that listens on a port. None: no program, or it is unknown.
pub fn port_owner(port: u16) -> Option<String> {
    let inodes: Vec<String> = SOCKETS
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|text| listening_inodes(&text, port))
        .collect();
    let targets: Vec<String> = inodes.into_iter().map(|inode| format!("socket:[{inode}]")).collect();
    let is_owner = |process: &std::path::Path| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let links = files.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.into_iter().any(|link| targets.iter().any(|target| link.as_os_str() == target.as_str()))
    };
    if targets.is_empty() {
        return None;
    }
    let processes = std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let owner = processes.into_iter().find(|process| is_owner(process))?;
    let name = std::fs::read_to_string(owner.join("comm")).ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Inodes of the sockets that listen on a port, in a table as Linux writes it.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let ending = format!(":{port:04X}");
    let inode = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_it = columns.get(1)?.ends_with(&ending) && columns.get(3) == Some(&LISTENING);
        is_it.then(|| columns.get(9).map(|inode| (*inode).to_owned()))?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_sockets_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:21C2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0\n\
             1: 0100007F:21C2 0100007F:A000 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 100 0\n\
             2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12 1 0 100 0\n";
        assert_eq!(listening_inodes(table, 8642), ["4711"]);
        assert_eq!(listening_inodes(table, 22), ["12"]);
        assert!(listening_inodes(table, 9).is_empty() && listening_inodes("broken\nlines", 9).is_empty());
    }
}
