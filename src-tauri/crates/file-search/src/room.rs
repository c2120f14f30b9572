//! What a prompt has room for: whole files, and scanned pages of a project.

/// The scanned pages of a project take at most this part of a prompt: a half, or its texts would have no room.
const PAGES_PART: usize = 2;

/// Which of the files are given whole: all, if there is room; else the shortest, with room left for `passages`.
pub fn whole_files(tokens: &[u32], room: usize, passages: usize) -> Vec<bool> {
    let all: usize = tokens.iter().map(|n| *n as usize).sum();
    if all <= room {
        return vec![true; tokens.len()];
    }
    let mut order: Vec<usize> = (0..tokens.len()).collect();
    order.sort_by_key(|&at| tokens[at]);
    let (mut left, mut is_whole) = (room.saturating_sub(passages), vec![false; tokens.len()]);
    for at in order {
        if tokens[at] as usize <= left {
            left -= tokens[at] as usize;
            is_whole[at] = true;
        }
    }
    is_whole
}

/// Room for pages that come one after another. The first that does not fit ends it: a file is shown from its beginning.
#[derive(Debug)]
pub struct PageRoom(usize);

impl PageRoom {
    /// Of a prompt of at most `budget` tokens.
    pub fn of_prompt(budget: usize) -> Self {
        Self(budget / PAGES_PART)
    }

    /// Nothing fits any more.
    pub fn is_full(&self) -> bool {
        self.0 == 0
    }

    /// Takes a page in, if it fits.
    pub fn take(&mut self, tokens: u32) -> bool {
        let left = self.0.checked_sub(tokens as usize);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_whole_where_they_fit() {
        let cases: &[(&[u32], usize, &[bool])] = &[
            (&[], 0, &[]),
            (&[100], 100, &[true]),
            (&[101], 100, &[false]),
            (&[500, 100, 400], 1000, &[true, true, true]),
            (&[900, 100, 400], 1000, &[false, true, true]),
            (&[900, 700, 800], 1000, &[false, false, false]),
            (&[u32::MAX, 10], 600, &[false, true]),
        ];
        for (tokens, room, expected) in cases {
            assert_eq!(whole_files(tokens, *room, 500), *expected, "{tokens:?} in {room}");
        }
    }

    #[test]
    fn pages_are_taken_from_the_beginning() {
        let mut room = PageRoom::of_prompt(1000);
        let taken: Vec<bool> = [300, 200, 1].into_iter().map(|tokens| room.take(tokens)).collect();
        assert_eq!((taken, room.is_full()), (vec![true, true, false], true));
        let mut room = PageRoom::of_prompt(1000);
        let taken: Vec<bool> = [300, 201, 100].into_iter().map(|tokens| room.take(tokens)).collect();
        assert_eq!((taken, room.is_full()), (vec![true, false, false], true));
    }
}
