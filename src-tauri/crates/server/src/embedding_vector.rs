//! Vectors with fewer numbers than the model computes.

/// Keeps the first `n` numbers of a vector and gives it length 1 again (Kusupati et al. 2022, arXiv 2205.13147).
///
/// Error: a sentence, for more numbers than there are.
pub fn shorten(vector: &mut Vec<f32>, n: usize) -> Result<(), String> {
    if n > vector.len() {
        return Err(format!("`dimensions` is {n}, but the model's vectors have {} numbers.", vector.len()));
    }
    vector.truncate(n);
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_vectors_have_length_1() {
        let mut vector = vec![0.6, 0.0, 0.8];
        shorten(&mut vector, 2).unwrap();
        assert_eq!(vector, [1.0, 0.0]);
        assert!(shorten(&mut vector, 3).unwrap_err().contains("`dimensions` is 3"));
    }
}
