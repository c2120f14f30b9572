use weights::dtype::TABLE;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = std::fs::read(&args[1]).unwrap();
    let mut values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    values.truncate(values.len() / 256 * 256);
    for row in TABLE.iter().filter(|r| r.block_len > 1) {
        if args.len() > 2 && !args[2..].iter().any(|a| a == row.name) {
            continue;
        }
        let Some(encode) = row.dtype.encoder() else { continue };
        let mut out = vec![0; values.len() / row.block_len * row.block_bytes];
        let start = std::time::Instant::now();
        encode(&values, &mut out);
        let t = start.elapsed();
        let mut back = vec![0f32; values.len()];
        (row.codec.as_ref().unwrap().decode)(&out, &mut back);
        let s: f64 = values.iter().zip(&back).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        println!(
            "{} {:.6e} {:.1} Mvalues/s",
            row.name,
            (s / values.len() as f64).sqrt(),
            values.len() as f64 / t.as_secs_f64() / 1e6
        );
    }
}
