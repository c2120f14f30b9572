//! Which servers are who they say they are: the system's certificate store decides, for every client of ours.
//!
//! A certificate that is in the store itself is trusted for its own names. That is how people trust the self-signed
//! certificate of a server in their own network, and other programs accept it.
#![forbid(unsafe_code)]

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Creates the configuration of a client. A system without certificates still reaches what needs none. Errors if the
/// cryptography supports no version of TLS that we speak.
pub fn client_config() -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // Another part of the program may have chosen the same already.
    let _ = CryptoProvider::install_default(provider.as_ref().clone());
    let system = Verifier::new(Arc::clone(&provider));
    if let Err(error) = &system {
        tracing::warn!("the certificates of the system can't be read: {error}");
    }
    let verifier =
        StoreVerifier { system: system.ok(), provider: Arc::clone(&provider), store: OnceLock::new() };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

/// The system's verifier, and certificates that are in its store themselves.
#[derive(Debug)]
struct StoreVerifier {
    /// None: the system has no certificates.
    system: Option<Verifier>,
    provider: Arc<CryptoProvider>,
    /// Read when a certificate is refused for the first time.
    store: OnceLock<Vec<CertificateDer<'static>>>,
}

impl StoreVerifier {
    fn is_in_store(&self, certificate: &CertificateDer<'_>) -> bool {
        self.store.get_or_init(stored_certificates).iter().any(|stored| stored == certificate)
    }
}

/// Whether a certificate was refused only because no authority that the system knows has issued it. Its dates were checked before.
fn lacks_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        // `openssl req -x509` makes certificates that may sign others. The verifier has no public name for that.
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            format!("{other:?}").contains("CaUsedAsEndEntity")
        }
        _ => false,
    }
}

#[cfg(all(unix, not(target_vendor = "apple")))]
fn stored_certificates() -> Vec<CertificateDer<'static>> {
    let found = rustls_native_certs::load_native_certs();
    for error in found.errors {
        tracing::warn!("a certificate of the system can't be read: {error}");
    }
    found.certs
}

/// There the system's verifier knows them.
#[cfg(not(all(unix, not(target_vendor = "apple"))))]
fn stored_certificates() -> Vec<CertificateDer<'static>> {
    Vec::new()
}

impl ServerCertVerifier for StoreVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let system = self.system.as_ref().ok_or(CertificateError::UnknownIssuer)?;
        let verified = system.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if lacks_issuer(&error) && self.is_in_store(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
