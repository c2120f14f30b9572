//! Reuse of large vectors: fresh ones cost page faults.

/// Vectors that are not in use.
#[derive(Default)]
pub(super) struct Buffers {
    free: Vec<Vec<f32>>,
}

impl Buffers {
    /// Returns a vector of `len` arbitrary numbers: the smallest free one that is large enough, or a new one.
    pub fn take(&mut self, len: usize) -> Vec<f32> {
        let fitting = self.free.iter().enumerate().filter(|(_, buffer)| buffer.capacity() >= len);
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
