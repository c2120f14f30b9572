//! A sequence as bytes, and back: for checkpoint files and for other processes.
//!
//! Layout, little-endian: magic, format version, identity (which model, spec, kernels and precision wrote it),
//! counts, token hash, checksum; then the token ids; then for each page the bytes of each layer. `check` is the
//! one judge: it sees every snapshot before it leaves and after it comes in. Whatever doesn't fit is refused
//! with its own message, and the caller computes the tokens again.

use kernels::{Executor, KvDType};

use super::cache::{KvCache, SequenceId};
use super::checksum::xxh64;
use crate::TokenId;
use crate::error::{EngineError, Result};

const MAGIC: [u8; 8] = *b"INGLEKV\0";

/// Raised whenever the layout, or what page bytes mean, changes.
pub const FORMAT_VERSION: u32 = 1;

/// What must agree for the bytes of one process to mean the same in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `WeightFile::fingerprint`, hashed.
    pub model: u64,
    /// Hash of the spec: the same file read by another version of its architecture is another model.
    pub spec: u64,
    /// Hash of the backend kind of each layer: page layouts are theirs.
    pub backends: u64,
    pub kv: KvDType,
    /// Bytes of a page, all layers.
    pub page_bytes: usize,
    pub page_len: usize,
}

/// Bytes before the token ids.
const HEADER_LEN: usize = 88;

/// The header, field by field in file order after magic and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    kv: u32,
    model: u64,
    spec: u64,
    backends: u64,
    page_len: u64,
    page_bytes: u64,
    n_tokens: u64,
    n_pages: u64,
    token_hash: u64,
    checksum: u64,
}

impl Header {
    fn encode(&self) -> [u8; HEADER_LEN] {
        let mut out = [0; HEADER_LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.kv.to_le_bytes());
        for (field, word) in out[16..].chunks_exact_mut(8).zip(self.words()) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    fn words(&self) -> [u64; 9] {
        let Self {
            kv: _,
            model,
            spec,
            backends,
            page_len,
            page_bytes,
            n_tokens,
            n_pages,
            token_hash,
            checksum,
        } = *self;
        [model, spec, backends, page_len, page_bytes, n_tokens, n_pages, token_hash, checksum]
    }

    /// `bytes` begin with magic and version.
    fn decode(bytes: &[u8; HEADER_LEN]) -> Self {
        let mut words = [0; 9];
        for (word, field) in words.iter_mut().zip(bytes[16..].chunks_exact(8)) {
            *word = u64::from_le_bytes(field.try_into().expect("chunks of 8 bytes"));
        }
        let [model, spec, backends, page_len, page_bytes, n_tokens, n_pages, token_hash, checksum] = words;
        let kv = u32::from_le_bytes(bytes[12..16].try_into().expect("4 bytes"));
        Self { kv, model, spec, backends, page_len, page_bytes, n_tokens, n_pages, token_hash, checksum }
    }
}

/// The number that stands for a precision in a file. Never changed, only added to.
fn kv_code(kv: KvDType) -> u32 {
    match kv {
        KvDType::F32 => 0,
        KvDType::F16 => 1,
        KvDType::Q8_0 => 2,
        KvDType::Q4_0 => 3,
    }
}

/// A checked snapshot.
struct Contents<'a> {
    tokens: Vec<TokenId>,
    /// (n_pages, page_bytes)
    pages: &'a [u8],
}

/// The sequence as bytes.
pub fn write(identity: &Identity, cache: &KvCache, executor: &Executor, seq: SequenceId) -> Result<Vec<u8>> {
    let (tokens, pages) = (cache.tokens(seq)?, cache.pages(seq)?);
    let n_layers = executor.graph().kv().layers.len();
    let mut out = Vec::with_capacity(HEADER_LEN + tokens.len() * 4 + pages.len() * identity.page_bytes);
    out.extend_from_slice(&[0; HEADER_LEN]);
    tokens.iter().for_each(|token| out.extend_from_slice(&token.to_le_bytes()));
    for &page in pages {
        for layer in 0..n_layers {
            out.extend_from_slice(executor.kv_page(layer, page)?);
        }
    }
    seal(identity, tokens.len(), pages.len(), &mut out);
    check(identity, cache.n_ctx(), &out)?;
    Ok(out)
}

/// A new sequence from such bytes. On error nothing has changed.
pub fn restore(
    identity: &Identity,
    cache: &mut KvCache,
    executor: &mut Executor,
    bytes: &[u8],
) -> Result<SequenceId> {
    let contents = check(identity, cache.n_ctx(), bytes)?;
    let seq = cache.create()?;
    let filled = fill(cache, executor, seq, &contents);
    if filled.is_err() {
        cache.free(seq);
    }
    filled.map(|()| seq)
}

fn fill(
    cache: &mut KvCache,
    executor: &mut Executor,
    seq: SequenceId,
    contents: &Contents<'_>,
) -> Result<()> {
    cache.reserve(seq, contents.tokens.len())?;
    let n_layers = executor.graph().kv().layers.len();
    let mut rest = contents.pages;
    for &page in cache.pages(seq)? {
        for layer in 0..n_layers {
            let n_bytes = executor.kv_page(layer, page)?.len();
            let (bytes, after) = rest.split_at(n_bytes);
            executor.kv_write_page(layer, page, bytes)?;
            rest = after;
        }
    }
    cache.commit(seq, &contents.tokens)
}

/// Writes the header over the first `HEADER_LEN` bytes of a snapshot whose body stands behind it.
fn seal(identity: &Identity, n_tokens: usize, n_pages: usize, out: &mut [u8]) {
    let (header, body) = out.split_at_mut(HEADER_LEN);
    let mut fields = Header {
        kv: kv_code(identity.kv),
        model: identity.model,
        spec: identity.spec,
        backends: identity.backends,
        page_len: identity.page_len as u64,
        page_bytes: identity.page_bytes as u64,
        n_tokens: n_tokens as u64,
        n_pages: n_pages as u64,
        token_hash: xxh64(&body[..n_tokens * 4]),
        checksum: 0,
    };
    fields.checksum = checksum(&fields, body);
    header.copy_from_slice(&fields.encode());
}

/// Hash over the header with its checksum as 0, chained with the body's.
fn checksum(header: &Header, body: &[u8]) -> u64 {
    let head = xxh64(&Header { checksum: 0, ..*header }.encode());
    xxh64(&[head.to_le_bytes(), xxh64(body).to_le_bytes()].concat())
}

/// Judges a snapshot wholly: who wrote it, whether its lengths agree with each other and with the context, and
/// whether every byte is as it was.
fn check<'a>(identity: &Identity, n_ctx: usize, bytes: &'a [u8]) -> Result<Contents<'a>> {
    let Some((head, body)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Err(refused("snapshot.truncated", format!("the snapshot has only {} bytes", bytes.len())));
    };
    if head[..8] != MAGIC {
        return Err(refused("snapshot.magic", "this is not a snapshot".into()));
    }
    let version = u32::from_le_bytes(head[8..12].try_into().expect("4 bytes"));
    if version != FORMAT_VERSION {
        let message = format!("the snapshot has format {version}, this program writes {FORMAT_VERSION}");
        return Err(refused("snapshot.version", message));
    }
    let header = Header::decode(head);
    let same = [
        ("snapshot.model", "by another model file", header.model == identity.model),
        ("snapshot.spec", "for another reading of this model", header.spec == identity.spec),
        ("snapshot.backend", "on another kind of device", header.backends == identity.backends),
        ("snapshot.kv_dtype", "with another key-value precision", header.kv == kv_code(identity.kv)),
        (
            "snapshot.page_layout",
            "with other pages",
            header.page_len == identity.page_len as u64 && header.page_bytes == identity.page_bytes as u64,
        ),
    ];
    if let Some((code, how, _)) = same.iter().find(|(_, _, same)| !same) {
        return Err(refused(code, format!("the snapshot was written {how}")));
    }
    if header.n_tokens > n_ctx as u64 {
        let message = format!("the snapshot holds {} tokens, the context {n_ctx}", header.n_tokens);
        return Err(refused("snapshot.context", message));
    }
    if header.n_pages != header.n_tokens.div_ceil(header.page_len) {
        let message = format!("{} tokens cannot fill {} pages", header.n_tokens, header.n_pages);
        return Err(refused("snapshot.counts", message));
    }
    // Both counts are bounded by the context now, so the sum is small.
    let (n_token_bytes, n_page_bytes) =
        (header.n_tokens as usize * 4, header.n_pages as usize * identity.page_bytes);
    if body.len() != n_token_bytes + n_page_bytes {
        let message =
            format!("the snapshot's body has {} bytes, not {}", body.len(), n_token_bytes + n_page_bytes);
        return Err(refused("snapshot.length", message));
    }
    let (tokens, pages) = body.split_at(n_token_bytes);
    if xxh64(tokens) != header.token_hash {
        return Err(refused(
            "snapshot.tokens",
            "the snapshot's tokens are not those it was written with".into(),
        ));
    }
    if checksum(&header, body) != header.checksum {
        return Err(refused(
            "snapshot.checksum",
            "the snapshot's bytes have changed since it was written".into(),
        ));
    }
    let id = |bytes: &[u8]| TokenId::from_le_bytes(bytes.try_into().expect("chunks of 4 bytes"));
    Ok(Contents { tokens: tokens.chunks_exact(4).map(id).collect(), pages })
}

fn refused(code: &'static str, message: String) -> EngineError {
    EngineError::new(code, message, "It is dropped; the conversation is read again from its text.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const N_CTX: usize = 64;

    fn identity() -> Identity {
        Identity { model: 1, spec: 2, backends: 3, kv: KvDType::F16, page_bytes: 10, page_len: 32 }
    }

    fn sealed(n_tokens: usize, n_pages: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN];
        (0..n_tokens as u32).for_each(|t| bytes.extend_from_slice(&t.to_le_bytes()));
        bytes.extend((0..n_pages * 10).map(|i| i as u8));
        seal(&identity(), n_tokens, n_pages, &mut bytes);
        bytes
    }

    #[test]
    fn a_sealed_snapshot_is_read_back() {
        let bytes = sealed(40, 2);
        let contents = check(&identity(), N_CTX, &bytes).unwrap();
        assert_eq!(contents.tokens, (0..40).collect::<Vec<u32>>());
        assert_eq!(contents.pages.len(), 20);
        assert!(check(&identity(), N_CTX, &sealed(0, 0)).is_ok(), "an empty sequence is one too");
    }

    #[test]
    fn every_disagreement_has_its_own_code() {
        type Change = fn(&mut Identity);
        let cases: [(&str, Change); 6] = [
            ("snapshot.model", |i| i.model += 1),
            ("snapshot.spec", |i| i.spec += 1),
            ("snapshot.backend", |i| i.backends += 1),
            ("snapshot.kv_dtype", |i| i.kv = KvDType::F32),
            ("snapshot.page_layout", |i| i.page_bytes += 1),
            ("snapshot.page_layout", |i| i.page_len += 1),
        ];
        for (code, change) in cases {
            let mut other = identity();
            change(&mut other);
            assert_eq!(check(&other, N_CTX, &sealed(40, 2)).err().unwrap().code(), code);
        }
        assert_eq!(check(&identity(), 39, &sealed(40, 2)).err().unwrap().code(), "snapshot.context");
        assert_eq!(check(&identity(), N_CTX, &sealed(40, 1)).err().unwrap().code(), "snapshot.counts");
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_refused() {
        let good = sealed(33, 2);
        for n in 0..good.len() {
            assert!(check(&identity(), N_CTX, &good[..n]).is_err(), "cut to {n} bytes");
        }
        let mut longer = good.clone();
        longer.push(0);
        assert_eq!(check(&identity(), N_CTX, &longer).err().unwrap().code(), "snapshot.length");
        let mut codes = std::collections::BTreeSet::new();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            codes.insert(check(&identity(), N_CTX, &bad).err().expect("a flipped bit is noticed").code());
        }
        for code in ["snapshot.magic", "snapshot.version", "snapshot.tokens", "snapshot.checksum"] {
            assert!(codes.contains(code), "{code} among {codes:?}");
        }
    }
}
