// ln(1 + e^x)
fn softplus(x: f32) -> f32 {
  // the logarithm loses all digits for small e^x; its series does not
  let e = exp(min(x, 20.0));
  return select(select(log(1.0 + e), e * (1.0 - e * (0.5 - e / 3.0)), e < 1e-2), x, x > 20.0);
}
