//! Latent attention of one layer: queries are projected to the latent, which is all that the cache holds for every head.

use kernels::{Columns, Experts, ValueId};

use super::Decoder;
use crate::error::Result;
use crate::spec::{LatentAttention, Role};

impl Decoder<'_> {
    /// x (tokens, d_model) → same shape
    pub(super) fn latent_attention(&mut self, x: ValueId, spec: &LatentAttention) -> Result<ValueId> {
        let LatentAttention { attention, rank, rope_dim, .. } = spec;
        // One matrix per head, which every token passes.
        let route = self.graph.route_all(self.name("latent.heads"), attention.n_heads)?;
        let q = self.latent_queries(x, route, spec)?; // (tokens, n_heads · (rank + rope_dim))
        let latent = self.matmul("latent.down", x, Role::LatentDown, None)?; // (tokens, rank)
        let latent = self.norm_groups("latent.norm", latent, spec.norm, Role::LatentNorm, *rank)?;
        let turned = self.matmul("latent.rope", x, Role::LatentRope, None)?; // (tokens, rope_dim)
        let turned = self.rope("latent.k_rope", turned, &attention.rope, 1, *rope_dim)?;
        let kv = self.graph.join_columns(self.name("latent.kv"), latent, turned, 1)?;
        // Keys and values are the same rows; what the rotated columns add to the output is cut off below.
        let kv_layer = self.write_kv(kv, kv, attention.head_dim)?;
        let attended = self.attend(q, attention, kv_layer)?; // like q
        let seen = Columns { n_groups: attention.n_heads, stride: rank + rope_dim, start: 0, width: *rank };
        let seen = self.graph.columns(self.name("latent.seen"), attended, seen)?; // (tokens, n_heads · rank)
        let values = self.per_head("latent.values", seen, route, Role::LatentValues)?; // (tokens, n_heads · value_dim)
        self.matmul("attention.out", values, Role::AttentionOut, None)
    }

    /// Builds queries for the cache: the unrotated part projected to the latent, and the rotated part.
    fn latent_queries(&mut self, x: ValueId, route: ValueId, spec: &LatentAttention) -> Result<ValueId> {
        let (n_heads, nope_dim, rope_dim) = (spec.attention.n_heads, spec.nope_dim, spec.rope_dim);
        let mut x = x;
        if let Some(query) = spec.query_rank {
            x = self.matmul("latent.q_down", x, Role::LatentQueryDown, None)?; // (tokens, query rank)
            x = self.norm_groups("latent.q_norm", x, query.norm, Role::LatentQueryNorm, query.rank)?;
        }
        let q = self.matmul("latent.q", x, Role::LatentQuery, None)?; // (tokens, n_heads · (nope_dim + rope_dim))
        let part = |start, width| Columns { n_groups: n_heads, stride: nope_dim + rope_dim, start, width };
        let nope = self.graph.columns(self.name("latent.q_nope"), q, part(0, nope_dim))?;
        let turned = self.graph.columns(self.name("latent.q_turned"), q, part(nope_dim, rope_dim))?;
        let turned = self.rope("latent.q_rope", turned, &spec.attention.rope, n_heads, rope_dim)?;
        let nope = self.per_head("latent.keys", nope, route, Role::LatentKeys)?; // (tokens, n_heads · rank)
        Ok(self.graph.join_columns(self.name("latent.q_joined"), nope, turned, n_heads)?)
    }

    /// Multiplies each head's columns by its own matrix.
    fn per_head(&mut self, part: &str, x: ValueId, route: ValueId, role: Role) -> Result<ValueId> {
        let weights = self.weights.experts(role, self.layer, self.graph.device())?.into();
        Ok(self.graph.expert_matmul(self.name(part), x, route, Experts { weights, bias: None })?)
    }
}
