//! Handshakes with a local server, by a process whose store is one file (`SSL_CERT_FILE`).
#![cfg(all(unix, not(target_vendor = "apple")))]
#![allow(clippy::unwrap_used)] // a test

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConnection, ServerConfig, ServerConnection, Stream};

/// The address that the child process connects to.
const ADDRESS: &str = "TLS_TEST_ADDRESS";
/// The name that it expects there.
const NAME: &str = "TLS_TEST_NAME";

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// Serves handshakes with a certificate; the address.
fn serve(certificate: &str) -> String {
    let certificates: Vec<CertificateDer<'static>> =
        CertificateDer::pem_file_iter(data(&format!("{certificate}.pem")))
            .unwrap()
            .map(Result::unwrap)
            .collect();
    let key = PrivateKeyDer::from_pem_file(data(&format!("{certificate}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(builder.with_no_client_auth().with_single_cert(certificates, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that trusts nothing leaves.
            let _ = Stream::new(&mut connection, &mut stream).write_all(b"hello");
        }
    });
    address
}

/// The child's part: what a handshake comes to.
#[test]
fn connect_as_child() {
    let (Ok(address), Ok(name)) = (std::env::var(ADDRESS), std::env::var(NAME)) else {
        return println!("skipped: it is a part of the tests beside it");
    };
    let config = Arc::new(tls::client_config().unwrap());
    let mut connection = ClientConnection::new(config, ServerName::try_from(name).unwrap()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut heard = [0; 5];
    match Stream::new(&mut connection, &mut stream).read_exact(&mut heard) {
        Ok(()) => println!("outcome: {}", String::from_utf8_lossy(&heard)),
        Err(error) => println!("outcome: {error}"),
    }
}

/// Whether a client whose store is `store` talks to a server with `certificate` under `name`.
fn check(store: &str, certificate: &str, name: &str, is_trusted: bool) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "connect_as_child", "--nocapture"])
        .env("SSL_CERT_FILE", data(store))
        .env_remove("SSL_CERT_DIR")
        .env(ADDRESS, serve(certificate))
        .env(NAME, name)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(told.contains("outcome: "), "{told}{}", String::from_utf8_lossy(&child.stderr));
    assert_eq!(told.contains("outcome: hello"), is_trusted, "{store} {certificate} {name}: {told}");
}

#[test]
fn certificates_of_the_store_are_trusted_for_their_names() {
    check("self-signed-ca.pem", "self-signed-ca", "localhost", true);
    check("self-signed-ca.pem", "self-signed-ca", "127.0.0.1", true);
    check("self-signed-leaf.pem", "self-signed-leaf", "localhost", true);
    check("authority.pem", "issued", "localhost", true);
    // Only the certificate that was issued is in the store, not its authority.
    check("issued.pem", "issued", "localhost", true);
}

#[test]
fn others_are_not() {
    check("self-signed-ca.pem", "self-signed-ca", "example.org", false);
    check("self-signed-ca.pem", "self-signed-leaf", "localhost", false);
    check("self-signed-leaf.pem", "self-signed-ca", "localhost", false);
    check("authority.pem", "self-signed-ca", "localhost", false);
    check("expired.pem", "expired", "localhost", false);
    check("empty.pem", "self-signed-ca", "localhost", false);
}
