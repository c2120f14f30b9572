//! Embeddings of images within a budget, and the token ids that stand for their rows in a prompt.
//!
//! The ids follow from the image's key alone. So whatever names a text by its tokens (shared prefixes, checkpoints)
//! tells images apart, in any process.

use ::vision::ImageSettings;
use kernels::N_COORDINATES;
use sha2::{Digest, Sha256};

use crate::TokenId;
use crate::kv::evicted::EVICTED_TOKEN;

/// Token ids from here to `EVICTED_TOKEN` stand for rows of images. Above every vocabulary.
pub(crate) const FIRST_IMAGE_TOKEN: TokenId = 1 << 30;

/// Returns whether a token stands for a row of an image.
pub(crate) fn is_image_token(token: TokenId) -> bool {
    (FIRST_IMAGE_TOKEN..EVICTED_TOKEN).contains(&token)
}

/// Returns the SHA-256 of a picture's file.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Identity of an image: of its bytes, and of how they become patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageKey([u8; 32]);

impl ImageKey {
    /// Creates the key of a picture with this SHA-256. `preparation` names everything else that its patches depend on,
    /// such as settings and, where a picture becomes several images, which of them this is.
    pub fn new(picture: &[u8; 32], preparation: &[u8]) -> Self {
        Self(Sha256::new().chain_update(picture).chain_update(preparation).finalize().into())
    }

    /// Creates the key of a picture that is prepared as these settings say.
    pub fn of_picture(sha256: &[u8; 32], settings: &ImageSettings) -> Self {
        Self::new(sha256, format!("{settings:?}").as_bytes())
    }

    /// Returns the tokens that stand for the image's `n` rows: 30 bits of a hash each. Where the rows are a grid of `cols`
    /// columns, the first token tells them, so that positions are known without the image.
    pub(crate) fn tokens(&self, n: usize, cols: Option<usize>) -> Vec<TokenId> {
        let token = |row: usize| {
            let hash = Sha256::new().chain_update(self.0).chain_update((row as u64).to_le_bytes()).finalize();
            let word = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
            FIRST_IMAGE_TOKEN | word & (FIRST_IMAGE_TOKEN - 1)
        };
        let mut tokens: Vec<TokenId> = (0..n).map(token).collect();
        let code = cols.and_then(|cols| divisors(n).position(|divisor| divisor == cols));
        let code = code.and_then(|code| TokenId::try_from(code).ok()).filter(|code| *code <= SHAPE_MASK);
        if let (Some(first), Some(code)) = (tokens.first_mut().filter(|_| n > 1), code) {
            *first = *first & !SHAPE_MASK | code;
        }
        tokens
    }
}

/// Bits of an image's first token that tell which divisor of its number of rows its columns are. A number of 16 bits has
/// at most 128 divisors.
const SHAPE_MASK: TokenId = 0xff;

/// Iterates over the divisors of a number in order.
fn divisors(n: usize) -> impl Iterator<Item = usize> {
    (1..=n).filter(move |divisor| n.is_multiple_of(*divisor))
}

/// What a tower made of an image.
pub(crate) struct ImageEmbeddings {
    /// (rows · cols, width)
    pub values: Vec<f32>,
    /// Rows of embeddings.
    pub rows: usize,
    /// Embeddings per row.
    pub cols: usize,
    /// Lengths of the parts that markers of the text separate, in order: tiles, or rows. Empty: there is one.
    pub runs: Vec<usize>,
}

/// An image that the tower has seen.
struct EmbeddedImage {
    key: ImageKey,
    tokens: Vec<TokenId>,
    embeddings: ImageEmbeddings,
    /// Number of the last use.
    last_use: u64,
}

impl EmbeddedImage {
    /// Returns first row and length of the run that a row is in.
    fn run_of(&self, row: usize) -> (usize, usize) {
        let mut start = 0;
        for len in &self.embeddings.runs {
            if row < start + len {
                return (start, *len);
            }
            start += len;
        }
        (start, self.tokens.len() - start)
    }
}

/// Where a position lies in an image, and in the rows of it that follow one another in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImagePosition {
    image: usize,
    row: usize,
    /// First row of the run and their number.
    run: (usize, usize),
}

impl ImagePosition {
    /// Returns the rows of the run before this position.
    pub fn n_before(&self) -> usize {
        self.row - self.run.0
    }

    /// Returns the rows of the run from this position on.
    pub fn n_left(&self) -> usize {
        self.run.1 - self.n_before()
    }
}

/// A walk along the positions of a text that has reached `next`. Images are shorter in rotations than in tokens.
#[derive(Debug, Default)]
pub(crate) struct CoordinateWalk {
    next: usize,
    /// Positions that images have saved so far.
    n_saved: usize,
}

/// The images that prompts may name.
pub(crate) struct ImageStore {
    /// Width of an embedding.
    width: usize,
    /// Bytes of embeddings to hold. Those that a sequence needs are held beyond it.
    max_bytes: usize,
    images: Vec<EmbeddedImage>,
    n_uses: u64,
}

impl ImageStore {
    /// Creates an empty store for embeddings of this width.
    pub fn new(width: usize, max_bytes: usize) -> Self {
        Self { width, max_bytes, images: Vec::new(), n_uses: 0 }
    }

    /// Returns the tokens of an image whose embeddings are held.
    pub fn tokens(&mut self, key: &ImageKey) -> Option<Vec<TokenId>> {
        self.n_uses += 1;
        let image = self.images.iter_mut().find(|image| image.key == *key)?;
        image.last_use = self.n_uses;
        Some(image.tokens.clone())
    }

    /// Holds the embeddings of an image and returns its tokens. Drops the least recently used ones beyond
    /// the budget, except those for whose first token `is_needed` holds.
    pub fn insert(
        &mut self,
        key: ImageKey,
        embeddings: ImageEmbeddings,
        is_needed: &dyn Fn(TokenId) -> bool,
    ) -> Vec<TokenId> {
        self.n_uses += 1;
        let n = embeddings.values.len() / self.width;
        let ImageEmbeddings { rows, cols, .. } = embeddings;
        let tokens = key.tokens(n, Some(cols).filter(|cols| rows * cols == n));
        let last_use = self.n_uses;
        self.images.push(EmbeddedImage { key, tokens: tokens.clone(), embeddings, last_use });
        let n_bytes = |image: &EmbeddedImage| size_of_val(&image.embeddings.values[..]);
        while self.images.iter().map(n_bytes).sum::<usize>() > self.max_bytes {
            let is_free = |image: &EmbeddedImage| {
                image.last_use < last_use && !image.tokens.first().is_some_and(|token| is_needed(*token))
            };
            let oldest = self.images.iter().enumerate().filter(|(_, image)| is_free(image));
            let Some((at, _)) = oldest.min_by_key(|(_, image)| image.last_use) else { break };
            self.images.swap_remove(at);
        }
        tokens
    }

    /// Finds the image that a position belongs to. `token_at` returns the text's tokens as far as they are known.
    /// `None`: it belongs to none that is held.
    pub fn find(
        &self,
        position: usize,
        token_at: &dyn Fn(usize) -> Option<TokenId>,
    ) -> Option<ImagePosition> {
        let token = token_at(position).filter(|token| is_image_token(*token))?;
        let is_at = |image: &EmbeddedImage, row: usize| {
            let (first, len) = image.run_of(row);
            image.tokens[row] == token
                && position.checked_sub(row - first).is_some_and(|start| {
                    let mut tokens = image.tokens[first..first + len].iter().enumerate();
                    tokens.all(|(row, token)| token_at(start + row).is_none_or(|known| known == *token))
                })
        };
        self.images.iter().enumerate().find_map(|(at, image)| {
            let row = (0..image.tokens.len()).find(|row| is_at(image, *row))?;
            Some(ImagePosition { image: at, row, run: image.run_of(row) })
        })
    }

    /// Returns the time, row and column of a position, not before those that the walk has passed. In a text all are equal;
    /// in an image rows and columns count from its start, and what follows begins after the longer side. `None`: the
    /// shape of an image before or at the position is not known.
    pub fn coordinates(
        &self,
        position: usize,
        walk: &mut CoordinateWalk,
        token_at: &dyn Fn(usize) -> Option<TokenId>,
    ) -> Option<[u32; N_COORDINATES]> {
        let numbers = |all: [usize; N_COORDINATES]| {
            all.map(|n| u32::try_from(n).expect("the context is shorter than 2^32 tokens"))
        };
        loop {
            let start = walk.next - walk.n_saved;
            if !token_at(walk.next).is_some_and(is_image_token) {
                if walk.next == position {
                    return Some(numbers([start; N_COORDINATES]));
                }
                walk.next += 1;
                continue;
            }
            let (n_rows, cols) = self.shape_at(walk.next, token_at)?;
            let (rows, end) = (n_rows / cols, walk.next + n_rows);
            if position < end {
                let row = position - walk.next;
                return Some(numbers([start, start + row / cols, start + row % cols]));
            }
            walk.next = end;
            walk.n_saved += n_rows - rows.max(cols);
        }
    }

    /// Returns the rows and columns of the image that begins at a position: of one that is held, or as its first token
    /// tells. `None`: its end is not known.
    fn shape_at(&self, start: usize, token_at: &dyn Fn(usize) -> Option<TokenId>) -> Option<(usize, usize)> {
        if let Some(found) = self.find(start, token_at) {
            return Some((found.n_left(), self.images[found.image].embeddings.cols));
        }
        let mut n_rows = 0;
        while is_image_token(token_at(start + n_rows)?) {
            n_rows += 1;
        }
        let code = token_at(start)? & SHAPE_MASK;
        let cols = if n_rows == 1 { Some(1) } else { divisors(n_rows).nth(code as usize) };
        Some((n_rows, cols?))
    }

    /// Returns the embedding of a position that `find` returned. (width)
    pub fn row(&self, at: ImagePosition) -> &[f32] {
        &self.images[at.image].embeddings.values[at.row * self.width..][..self.width]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 2;

    /// One row of embeddings.
    fn line(values: Vec<f32>) -> ImageEmbeddings {
        ImageEmbeddings { rows: 1, cols: values.len() / WIDTH, values, runs: Vec::new() }
    }

    fn key(n: u8) -> ImageKey {
        ImageKey::new(&[n; 32], b"as it is")
    }

    fn at(tokens: &[TokenId]) -> impl Fn(usize) -> Option<TokenId> {
        |position| tokens.get(position).copied()
    }

    #[test]
    fn tokens_tell_pictures_and_preparations_apart() {
        let tokens = key(1).tokens(3, None);
        assert_eq!(tokens, key(1).tokens(3, None));
        assert!(tokens.iter().all(|token| is_image_token(*token)), "{tokens:?}");
        assert_ne!(tokens, key(2).tokens(3, None));
        assert_ne!(tokens, ImageKey::new(&[1; 32], b"smaller").tokens(3, None));
    }

    #[test]
    fn every_position_finds_its_row() {
        let mut store = ImageStore::new(WIDTH, usize::MAX);
        let a = store.insert(key(1), line(vec![1.0, 1.5, 2.0, 2.5]), &|_| false);
        let b = store.insert(key(2), line(vec![3.0, 3.5]), &|_| false);
        let text = [&[7], &a[..], &b, &a, &[8]].concat();
        let rows: Vec<Option<f32>> = (0..=text.len())
            .map(|position| store.find(position, &at(&text)).map(|found| store.row(found)[0]))
            .collect();
        let expected = [None, Some(1.0), Some(2.0), Some(3.0), Some(1.0), Some(2.0), None, None];
        assert_eq!(rows, expected);
        let found = store.find(2, &at(&text)).unwrap();
        assert_eq!((found.n_before(), found.n_left()), (1, 1));
        // A second half alone is no image: what is before it would differ.
        assert_eq!(store.find(0, &at(&a[1..])), None);
    }

    #[test]
    fn markers_may_lie_between_the_runs_of_an_image() {
        let mut store = ImageStore::new(WIDTH, usize::MAX);
        let values = (0..5).flat_map(|row| [row as f32; WIDTH]).collect();
        let image = ImageEmbeddings { values, rows: 1, cols: 5, runs: vec![2, 3] };
        let tokens = store.insert(key(1), image, &|_| false);
        let text = [&tokens[..2], &[7], &tokens[2..], &[7]].concat();
        let rows: Vec<Option<f32>> = (0..text.len())
            .map(|position| store.find(position, &at(&text)).map(|found| store.row(found)[0]))
            .collect();
        assert_eq!(rows, [Some(0.0), Some(1.0), None, Some(2.0), Some(3.0), Some(4.0), None]);
        let found = store.find(4, &at(&text)).unwrap();
        assert_eq!((found.n_before(), found.n_left()), (1, 2));
    }

    #[test]
    fn positions_go_on_after_the_longer_side_of_an_image() {
        let mut store = ImageStore::new(WIDTH, usize::MAX);
        let image = ImageEmbeddings { values: vec![0.0; 6 * WIDTH], rows: 2, cols: 3, runs: Vec::new() };
        let tokens = store.insert(key(1), image, &|_| false);
        let text = [&[7, 8], &tokens[..], &[9]].concat();
        let all = |first: usize| -> Vec<[u32; N_COORDINATES]> {
            let mut walk = CoordinateWalk::default();
            (first..text.len() + 1)
                .map(|at_| store.coordinates(at_, &mut walk, &at(&text)).unwrap())
                .collect()
        };
        let expected = [
            [0, 0, 0],
            [1, 1, 1],
            [2, 2, 2],
            [2, 2, 3],
            [2, 2, 4],
            [2, 3, 2],
            [2, 3, 3],
            [2, 3, 4],
            [5, 5, 5],
            [6, 6, 6],
        ];
        assert_eq!(all(0), expected);
        assert_eq!(all(4), expected[4..]);
        assert_eq!(all(8), expected[8..]);
        let forgotten = |position, text: &[TokenId]| {
            ImageStore::new(WIDTH, 0).coordinates(position, &mut CoordinateWalk::default(), &at(text))
        };
        assert_eq!(forgotten(8, &text), Some(expected[8]), "the first token tells the shape");
        assert_eq!(forgotten(4, &text), Some(expected[4]));
        assert_eq!(forgotten(4, &text[..6]), None, "its end is not known");
    }

    #[test]
    fn the_least_recently_used_image_leaves_unless_it_is_needed() {
        let bytes = WIDTH * size_of::<f32>();
        let mut store = ImageStore::new(WIDTH, 2 * bytes);
        let first = store.insert(key(1), line(vec![1.0; WIDTH]), &|_| false);
        store.insert(key(2), line(vec![2.0; WIDTH]), &|_| false);
        store.insert(key(3), line(vec![3.0; WIDTH]), &|token| token == first[0]);
        assert_eq!(store.tokens(&key(1)), Some(first));
        assert_eq!(store.tokens(&key(2)), None);
        assert!(store.tokens(&key(3)).is_some());
    }
}
