//! Which weights stay in memory where not all of them may: those that will be needed soonest.
//!
//! A model reads its weights in the same order for every token, so what was used longest ago is what comes next, and
//! keeping the recently used would never find anything. When a matrix is needed again is known; when an expert is, is
//! guessed from how often it was chosen lately. Pure: numbers in, numbers out; knows no bytes, files or clocks.

use std::ops::Range;

/// Weights that are needed as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    pub n_bytes: u64,
    /// when in a run it is needed; several may share a place
    pub place: u32,
    /// how likely a run needs it at all: 1 for all but experts
    pub likely: f32,
}

/// How much one run says about an expert: the last 64 or so count.
const FORGETTING: f32 = 1.0 / 64.0;
/// An expert that was never chosen may be yet.
const LEAST_LIKELY: f32 = 1e-4;

/// What is in memory of a model whose weights may take `budget` bytes.
#[derive(Debug)]
pub struct Shelf {
    pieces: Vec<Piece>,
    is_here: Vec<bool>,
    is_held: Vec<bool>,
    /// what the run needs at its place, or brought in for a later one: it stays until that has passed
    held: Vec<usize>,
    /// places in a run
    n_places: u32,
    /// where the current run is
    place: u32,
    budget: u64,
    here: u64,
}

impl Shelf {
    /// Nothing is in memory yet.
    pub fn new(pieces: Vec<Piece>, budget: u64) -> Self {
        let n_places = pieces.iter().map(|piece| piece.place + 1).max().unwrap_or(1);
        let n = pieces.len();
        let (is_here, is_held, held) = (vec![false; n], vec![false; n], Vec::with_capacity(n));
        Self { pieces, is_here, is_held, held, n_places, place: 0, budget, here: 0 }
    }

    /// Bytes that count as being in memory.
    #[cfg(test)]
    fn n_bytes(&self) -> u64 {
        self.here
    }

    /// None: there is no such piece.
    pub fn place_of(&self, piece: usize) -> Option<u32> {
        self.pieces.get(piece).map(|piece| piece.place)
    }

    /// The run has come to `place`: what it held for the places between may go.
    pub fn arrive(&mut self, place: u32) {
        let ahead = |to: u32| (to + self.n_places - self.place) % self.n_places;
        let passed = ahead(place);
        let (pieces, is_held) = (&self.pieces, &mut self.is_held);
        self.held.retain(|piece| {
            is_held[*piece] = ahead(pieces[*piece].place) >= passed;
            is_held[*piece]
        });
        self.place = place;
    }

    /// A piece that the run needs now. Whether it has to be brought in; `release` hears of each that goes for it.
    /// The budget is exceeded only by what is needed at once.
    pub fn need(&mut self, piece: usize, release: &mut dyn FnMut(usize)) -> bool {
        self.hold(piece);
        if self.is_here[piece] {
            return false;
        }
        self.make_room(self.pieces[piece].n_bytes, None, release);
        self.take(piece);
        true
    }

    /// A piece that the run will need. Whether it has to be brought in now: not if it is there, nor if only what is
    /// needed sooner could go for it.
    pub fn expect(&mut self, piece: usize, release: &mut dyn FnMut(usize)) -> bool {
        if self.is_here[piece] {
            self.hold(piece);
            return false;
        }
        let fits = self.make_room(self.pieces[piece].n_bytes, Some(self.until(piece)), release);
        if fits {
            self.hold(piece);
            self.take(piece);
        }
        fits
    }

    /// A run chose some of the experts of a place, whose pieces these are, and passed the others over.
    pub fn learn(&mut self, experts: Range<usize>, is_chosen: &dyn Fn(usize) -> bool) {
        for (expert, piece) in self.pieces[experts].iter_mut().enumerate() {
            let now = if is_chosen(expert) { 1.0 } else { 0.0 };
            piece.likely = (piece.likely + (now - piece.likely) * FORGETTING).max(LEAST_LIKELY);
        }
    }

    fn hold(&mut self, piece: usize) {
        if !std::mem::replace(&mut self.is_held[piece], true) {
            self.held.push(piece);
        }
    }

    fn take(&mut self, piece: usize) {
        self.is_here[piece] = true;
        self.here += self.pieces[piece].n_bytes;
    }

    /// Lets pieces go until `n_bytes` fit, the last needed first; none that is held, and none that is needed before
    /// `until`. Whether they fit.
    fn make_room(&mut self, n_bytes: u64, until: Option<f32>, release: &mut dyn FnMut(usize)) -> bool {
        while self.here + n_bytes > self.budget {
            let may_go = (0..self.pieces.len()).filter(|i| self.is_here[*i] && !self.is_held[*i]);
            let last = may_go.map(|i| (self.until(i), i)).reduce(|a, b| if b.0 > a.0 { b } else { a });
            let Some((_, piece)) = last.filter(|(last, _)| until.is_none_or(|until| *last > until)) else {
                return false;
            };
            self.is_here[piece] = false;
            self.here -= self.pieces[piece].n_bytes;
            release(piece);
        }
        true
    }

    /// Places until a piece is needed, as far as can be told. Those of the current place have had their turn.
    fn until(&self, piece: usize) -> f32 {
        let Piece { place, likely, .. } = self.pieces[piece];
        let n = self.n_places;
        let next = if place > self.place { place - self.place } else { place + n - self.place };
        next as f32 + n as f32 * (1.0 / likely - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dense(n: u32) -> Vec<Piece> {
        (0..n).map(|place| Piece { n_bytes: 10, place, likely: 1.0 }).collect()
    }

    /// Runs through all places; returns how many pieces were brought in.
    fn run(shelf: &mut Shelf, n: u32, ahead: u32, budget: u64) -> usize {
        let mut brought = 0;
        for place in 0..n {
            shelf.arrive(place);
            brought += usize::from(shelf.need(place as usize, &mut |_| ()));
            for next in 1..=ahead {
                brought += usize::from(shelf.expect(((place + next) % n) as usize, &mut |_| ()));
            }
            assert!(shelf.n_bytes() <= budget.max(10), "{} bytes at {place}", shelf.n_bytes());
        }
        brought
    }

    #[test]
    fn of_a_dense_model_a_fixed_share_stays() {
        for (n, budget, ahead) in
            [(10, 50, 0), (10, 50, 2), (100, 550, 5), (7, 30, 1), (10, 10, 3), (10, 5, 0)]
        {
            let mut shelf = Shelf::new(dense(n), budget);
            run(&mut shelf, n, ahead, budget);
            for _ in 0..20 {
                let brought = run(&mut shelf, n, ahead, budget);
                let may_stay = (budget / 10) as usize;
                // one place is for what comes and goes, and one more for each that is brought in ahead
                let most = n as usize + 1 + ahead as usize - may_stay.min(n as usize);
                assert!(brought <= most.min(n as usize), "{n} {budget} {ahead}: {brought} of {most}");
            }
        }
    }

    #[test]
    fn what_fits_is_brought_in_once() {
        let mut shelf = Shelf::new(dense(8), 80);
        assert_eq!(run(&mut shelf, 8, 2, 80), 8);
        assert_eq!((0..9).map(|_| run(&mut shelf, 8, 2, 80)).sum::<usize>(), 0);
        assert_eq!(shelf.n_bytes(), 80);
    }

    #[test]
    fn what_a_run_needs_at_once_is_all_there() {
        let pieces = vec![Piece { n_bytes: 10, place: 0, likely: 0.5 }; 4];
        let mut shelf = Shelf::new(pieces, 20);
        let mut gone = Vec::new();
        shelf.arrive(0);
        (0..4).for_each(|piece| _ = shelf.need(piece, &mut |piece| gone.push(piece)));
        assert_eq!((shelf.n_bytes(), gone.len()), (40, 0), "held together, though beyond the budget");
        let mut shelf =
            Shelf::new([dense(1), vec![Piece { n_bytes: 10, place: 1, likely: 0.5 }; 4]].concat(), 20);
        shelf.arrive(1);
        (1..5).for_each(|piece| _ = shelf.need(piece, &mut |piece| gone.push(piece)));
        shelf.arrive(0);
        assert!(shelf.need(0, &mut |piece| gone.push(piece)));
        assert_eq!((shelf.n_bytes(), gone.len()), (20, 3), "and the budget holds again");
    }

    /// Experts are chosen by a made-up rule: low numbers far more often.
    #[test]
    fn experts_in_favour_stay() {
        let (n_layers, n_experts) = (4usize, 16usize);
        let piece = |place: usize, likely| Piece { n_bytes: 10, place: place as u32, likely };
        let mut pieces = Vec::new();
        for layer in 0..n_layers {
            pieces.push(piece(2 * layer, 1.0));
            pieces.extend(vec![piece(2 * layer + 1, 1.0 / 16.0); n_experts]);
        }
        // room for the dense pieces and four experts of each layer
        let budget = 10 * (n_layers + 4 * n_layers) as u64;
        let mut shelf = Shelf::new(pieces, budget);
        let mut seed = 1u64;
        let (mut asked, mut missed, mut dense_missed) = (0, 0, 0);
        for round in 0..2000 {
            for layer in 0..n_layers {
                let first = layer * (n_experts + 1);
                shelf.arrive(2 * layer as u32);
                let brought = shelf.need(first, &mut |_| ());
                shelf.arrive(2 * layer as u32 + 1);
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let draw = (seed >> 33) % 100;
                let chosen = if draw < 90 { draw as usize % 3 } else { draw as usize % n_experts };
                shelf.learn(first + 1..first + 1 + n_experts, &|expert| expert == chosen);
                let missing = shelf.need(first + 1 + chosen, &mut |_| ());
                if round >= 200 {
                    (asked, missed) = (asked + 1, missed + usize::from(missing));
                    dense_missed += usize::from(brought);
                }
                assert!(shelf.n_bytes() <= budget);
            }
        }
        assert_eq!(dense_missed, 0, "what every token needs stays before any expert");
        assert!(missed * 100 < asked * 12, "{missed} of {asked} were not there");
    }
}
