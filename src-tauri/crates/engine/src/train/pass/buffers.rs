//! Reuse of large vectors: fresh ones cost page faults.

/// A buffer is used again if it is larger by an eighth at most: what is kept until the backward pass in a much larger one
/// wastes memory.
const MAX_EXCESS_DIVISOR: usize = 8;

/// Vectors that are not in use.
#[derive(Default)]
pub(super) struct Buffers {
    free: Vec<Vec<f32>>,
}

impl Buffers {
    /// Returns a vector of `len` arbitrary numbers: the smallest free one that is large enough and hardly larger, or a
    /// new one.
    pub fn take(&mut self, len: usize) -> Vec<f32> {
        let fits = len..=len + len / MAX_EXCESS_DIVISOR;
        let fitting = self.free.iter().enumerate().filter(|(_, buffer)| fits.contains(&buffer.capacity()));
        match fitting.min_by_key(|(_, buffer)| buffer.capacity()).map(|(i, _)| i) {
            Some(i) => {
                let mut buffer = self.free.swap_remove(i);
                buffer.resize(len, 0.0);
                buffer
            }
            None => vec![0.0; len],
        }
    }

    /// Returns a vector of `len` zeros.
    pub fn take_zeroed(&mut self, len: usize) -> Vec<f32> {
        let mut buffer = self.take(len);
        buffer.fill(0.0);
        buffer
    }

    /// Takes a vector back.
    pub fn give(&mut self, buffer: Vec<f32>) {
        if buffer.capacity() > 0 {
            self.free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_used_again_for_about_its_own_size() {
        let mut buffers = Buffers::default();
        buffers.give(Vec::with_capacity(900));
        buffers.give(Vec::with_capacity(880));
        for (len, capacity) in [(800, 880), (800, 900), (800, 800)] {
            assert_eq!(buffers.take(len).capacity(), capacity, "{len}");
        }
        buffers.give(Vec::with_capacity(4000));
        assert_eq!(buffers.take(100).capacity(), 100);
    }
}
