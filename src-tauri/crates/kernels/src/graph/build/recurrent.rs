//! Recurrent layers: short convolutions, gated delta rules and state spaces.

use super::{GraphBuilder, NodeResult, check, gated, unary};
use crate::error::KernelError;
use crate::graph::{ConvShape, DeltaShape, MAX_DELTA_HEAD_DIM, Op, SsmShape, ValueId};

impl GraphBuilder {
    /// Short convolution; x (tokens, channels) → same shape
    pub fn short_conv(&mut self, name: impl Into<String>, x: ValueId, conv: ConvShape) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, x)?;
        if conv.kernel < 2 {
            return Err(KernelError::mismatch(&name, "taps of the convolution", "at least 2", conv.kernel));
        }
        unary(&name, conv.act)?;
        gated(&name, conv.act)?; // shaders pass no factors
        check(
            &name,
            "weights of the convolution",
            value.width.saturating_mul(conv.kernel),
            conv.weight.len(),
        )?;
        if let Some(bias) = &conv.bias {
            check(&name, "biases of the convolution", value.width, bias.len())?;
        }
        self.use_state(&name, conv.state, (conv.kernel - 1) * value.width)?;
        Ok(self.push(name, Op::ShortConv { x, conv }, value.rows, value.width))
    }

    /// Gated delta rule; qkv (tokens, 2 · n_k_heads · k_dim + n_v_heads · v_dim), beta, alpha (tokens, n_v_heads)
    pub fn delta_net(
        &mut self,
        name: impl Into<String>,
        qkv: ValueId,
        beta: ValueId,
        alpha: ValueId,
        delta: DeltaShape,
    ) -> NodeResult {
        let name = name.into();
        let value = self.token_input(&name, qkv)?;
        let DeltaShape { n_k_heads, n_v_heads, k_dim, v_dim, .. } = delta;
        if n_k_heads == 0 || n_v_heads == 0 || !n_v_heads.is_multiple_of(n_k_heads) {
            let expected = format!("a multiple of {n_k_heads}");
            return Err(KernelError::mismatch(&name, "value heads", expected, n_v_heads));
        }
        for dim in [k_dim, v_dim] {
            if dim == 0 || dim > MAX_DELTA_HEAD_DIM {
                return Err(KernelError::mismatch(
                    &name,
                    "head size",
                    format!("1..={MAX_DELTA_HEAD_DIM}"),
                    dim,
                ));
            }
        }
        let keys = n_k_heads.saturating_mul(2 * k_dim);
        let values = n_v_heads.saturating_mul(v_dim);
        check(&name, "width of q, k and v", keys.saturating_add(values), value.width)?;
        for x in [beta, alpha] {
            let width = self.token_input(&name, x)?.width;
            check(&name, "width of a gate", n_v_heads, width)?;
        }
        check(&name, "decays", n_v_heads, delta.decay.len())?;
        check(&name, "time steps", n_v_heads, delta.dt_bias.len())?;
        self.use_state(&name, delta.state, n_v_heads * k_dim * v_dim)?;
        Ok(self.push(name, Op::DeltaNet { qkv, beta, alpha, delta }, value.rows, n_v_heads * v_dim))
    }

    /// State space; xbc (tokens, n_heads · head_dim + 2 · n_groups · d_state), dt (tokens, n_heads)
    pub fn ssm(&mut self, name: impl Into<String>, xbc: ValueId, dt: ValueId, ssm: SsmShape) -> NodeResult {
        let name = name.into();
        let (value, steps) = (self.token_input(&name, xbc)?, self.token_input(&name, dt)?);
        let SsmShape { n_heads, head_dim, n_groups, d_state, .. } = ssm;
        if n_groups == 0 || n_heads == 0 || !n_heads.is_multiple_of(n_groups) {
            let expected = format!("a multiple of {n_groups}");
            return Err(KernelError::mismatch(&name, "heads", expected, n_heads));
        }
        let inner = n_heads.checked_mul(head_dim).filter(|n| *n > 0);
        let groups = n_groups.checked_mul(d_state).and_then(|n| n.checked_mul(2)).filter(|n| *n > 0);
        let floats = inner.and_then(|inner| inner.checked_mul(d_state));
        let (Some(inner), Some(groups), Some(n_floats)) = (inner, groups, floats) else {
            return Err(KernelError::mismatch(&name, "head or state size", "a positive number", head_dim));
        };
        check(&name, "width of x, B and C", inner.saturating_add(groups), value.width)?;
        check(&name, "width of the time steps", n_heads, steps.width)?;
        for (what, len) in
            [("decays", ssm.decay.len()), ("skip factors", ssm.skip.len()), ("time steps", ssm.dt_bias.len())]
        {
            check(&name, what, n_heads, len)?;
        }
        self.use_state(&name, ssm.state, n_floats)?;
        Ok(self.push(name, Op::Ssm { xbc, dt, ssm }, value.rows, inner))
    }

    /// Assigns a state to a node. Errors: unknown, of another size, or in use.
    fn use_state(&mut self, name: &str, state: usize, n_floats: usize) -> Result<(), KernelError> {
        let Some(&found) = self.kv.states.get(state) else {
            let expected = format!("below {}", self.kv.states.len());
            return Err(KernelError::mismatch(name, "recurrent state", expected, state));
        };
        check(name, "floats of the state", n_floats, found)?;
        if self.state_devices[state].replace(self.device).is_some() {
            return Err(KernelError::mismatch(name, "users of this state", 1, 2));
        }
        Ok(())
    }
}
