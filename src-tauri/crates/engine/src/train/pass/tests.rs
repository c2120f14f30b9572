//! Every gradient against finite differences, and what must not change the numbers.
#![allow(clippy::single_range_in_vec_init, reason = "a batch of one sequence is a list of one range")]

use std::collections::HashMap;
use std::sync::Arc;

use kernels::cpu::isa::IsaLevel;
use kernels::ops::Kernels;
use kernels::ops::integer_panel::{self, PanelOutput};
use kernels::{
    Activation, AttentionShape, GraphBuilder, KvDType, KvLayerLayout, KvLayout, Mask, PAGE_LEN, RopeShape,
    RopeStyle, Tensor, ValueId,
};
use weights::{DType, SharedBytes, TensorView};

use super::attention::{self as head, HeadRows};
use super::matrix::Direction;
use super::product::Products;
use super::workers::Workers;
use super::{
    GradientSums, MemoryUse, Parameter, PassOptions, ProductPrecision, TrainedRows, TrainingBatch,
    TrainingPass, slopes,
};

/// A reproducible number between -1 and 1.
fn number(i: usize) -> f32 {
    let z = (i as u32 + 1).wrapping_mul(0x9e37_79b9);
    let z = (z ^ (z >> 15)).wrapping_mul(0x85eb_ca6b);
    let z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
    (z >> 8) as f32 / (1 << 23) as f32 - 1.0
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| number(i + seed * 10_007)).collect()
}

/// Σ weights · y, in double precision.
fn weighted(y: &[f32], weights: &[f32]) -> f64 {
    y.iter().zip(weights).map(|(y, w)| f64::from(*y) * f64::from(*w)).sum()
}

/// Slope of `f` along element `i` of `x`: central differences at two distances, extrapolated to zero.
fn slope(f: &dyn Fn(&[f32]) -> f64, x: &[f32], i: usize, h: f32) -> f64 {
    let difference = |h: f32| {
        let (mut above, mut below) = (x.to_vec(), x.to_vec());
        above[i] += h;
        below[i] -= h;
        (f(&above) - f(&below)) / (f64::from(above[i]) - f64::from(below[i]))
    };
    (4.0 * difference(h / 2.0) - difference(h)) / 3.0
}

/// Compares a gradient with the slopes of `f` at `x`.
fn check_gradient(what: &str, f: &dyn Fn(&[f32]) -> f64, x: &[f32], gradient: &[f32]) {
    check_within(what, f, x, gradient, 1e-3);
}

/// As `check_gradient`, with an error of at most `tolerance` of the largest slope.
fn check_within(what: &str, f: &dyn Fn(&[f32]) -> f64, x: &[f32], gradient: &[f32], tolerance: f64) {
    assert_eq!(x.len(), gradient.len(), "{what}");
    let scale = gradient.iter().fold(0.0f32, |max, g| max.max(g.abs()));
    assert!(scale > 0.0, "{what}: the gradient is zero everywhere");
    for (i, found) in gradient.iter().enumerate() {
        let want = slope(f, x, i, 0.05);
        let error = (f64::from(*found) - want).abs();
        assert!(error < tolerance * f64::from(scale), "{what}[{i}]: gradient {found}, slope {want}");
    }
}

#[test]
fn norms() {
    let (x, weight, bias, dy) = (numbers(48, 1), numbers(16, 2), numbers(48, 3), numbers(48, 4));
    for level in IsaLevel::present() {
        let kernels = Kernels::at(level);
        let mut dx = vec![0.0; 48];
        slopes::rms_norm(&x, &weight, 1e-2, &dy, &mut dx);
        let f = |x: &[f32]| {
            let mut y = vec![0.0; 48];
            (kernels.rms_norm)(x, &weight, 1e-2, &mut y);
            weighted(&y, &dy)
        };
        check_gradient("rms_norm", &f, &x, &dx);
        let weight = numbers(48, 5);
        slopes::layer_norm(&x, &weight, 1e-2, &dy, &mut dx);
        let f = |x: &[f32]| {
            let mut y = vec![0.0; 48];
            (kernels.layer_norm)(x, &weight, &bias, 1e-2, &mut y);
            weighted(&y, &dy)
        };
        check_gradient("layer_norm", &f, &x, &dx);
    }
}

const ACTIVATIONS: [Activation; 5] =
    [Activation::Identity, Activation::Sigmoid, Activation::Silu, Activation::Gelu, Activation::GeluTanh];

#[test]
fn activations_and_gated_units() {
    let scaled = |seed| numbers(40, seed).iter().map(|x| 4.0 * x).collect::<Vec<f32>>();
    let (x, up, dy) = (scaled(1), scaled(2), numbers(40, 3));
    for level in IsaLevel::present() {
        let kernels = Kernels::at(level);
        for act in ACTIVATIONS {
            let mut dx = vec![0.0; 40];
            slopes::activation(&kernels, &x, act, &dy, &mut dx);
            let f = |x: &[f32]| {
                let mut y = x.to_vec();
                (kernels.activate)(&mut y, act);
                weighted(&y, &dy)
            };
            check_gradient(&format!("{act:?}"), &f, &x, &dx);
            let (mut dgate, mut dup) = (vec![0.0; 40], vec![0.0; 40]);
            slopes::gated_unit(&kernels, [&x, &up, &dy], act, &mut dgate, &mut dup);
            let unit = |gate: &[f32], up: &[f32]| {
                let mut y = vec![0.0; 40];
                (kernels.glu)(gate, up, act, &mut y);
                weighted(&y, &dy)
            };
            check_gradient(&format!("gate of {act:?}"), &|gate| unit(gate, &up), &x, &dgate);
            check_gradient(&format!("unit of {act:?}"), &|up| unit(&x, up), &up, &dup);
        }
        let mut dx = vec![0.0; 40];
        slopes::softcap(&kernels, &x, 3.0, &dy, &mut dx);
        let f = |x: &[f32]| {
            let mut y = x.to_vec();
            (kernels.softcap)(&mut y, 3.0);
            weighted(&y, &dy)
        };
        check_gradient("softcap", &f, &x, &dx);
    }
}

/// Its slope bends at 0, where differences say nothing.
#[test]
fn squared_relu() {
    let mut dx = [0.0; 3];
    let kernels = Kernels::at(IsaLevel::detect());
    slopes::activation(&kernels, &[-1.0, 0.5, 3.0], Activation::ReluSquared, &[1.0, 2.0, 0.5], &mut dx);
    assert_eq!(dx, [0.0, 2.0, 3.0]);
}

fn attention(window: Option<usize>, softcap: Option<f32>) -> AttentionShape {
    AttentionShape {
        layer: 0,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 8,
        scale: 0.6,
        mask: Mask::Causal,
        window,
        softcap,
        sinks: None,
    }
}

#[test]
fn attention_over_sequences() {
    // More rows than a block of queries holds.
    let n = 37;
    let (q, k, v, dy) = (numbers(n * 32, 1), numbers(n * 16, 2), numbers(n * 16, 3), numbers(n * 32, 4));
    let kernels = Kernels::at(IsaLevel::detect());
    for (window, cap) in [(None, None), (Some(5), None), (None, Some(1.5)), (Some(9), Some(0.8))] {
        let shape = attention(window, cap);
        let (mut dq, mut dk, mut dv) = (vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]);
        for head in 0..4 {
            let rows = HeadRows { shape: &shape, head, q: &q, k: &k, v: &v };
            let of_head = head::backward(&kernels, &rows, &dy);
            for row in 0..n {
                let part = row * 8..(row + 1) * 8;
                dq[(row * 4 + head) * 8..][..8].copy_from_slice(&of_head.dq[part.clone()]);
                for (sum, part) in [(&mut dk, &of_head.dk[part.clone()]), (&mut dv, &of_head.dv[part])] {
                    let sum = &mut sum[(row * 2 + head / 2) * 8..][..8];
                    sum.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
                }
            }
        }
        let f = |q: &[f32], k: &[f32], v: &[f32]| {
            let of_head = |head| {
                let y = head::forward(&kernels, &HeadRows { shape: &shape, head, q, k, v });
                let own: Vec<f32> =
                    dy.chunks_exact(32).flat_map(|row| &row[head * 8..(head + 1) * 8]).copied().collect();
                weighted(&y, &own)
            };
            (0..4).map(of_head).sum::<f64>()
        };
        let what = |part: &str| format!("{part}, window {window:?}, cap {cap:?}");
        check_gradient(&what("queries"), &|q| f(q, &k, &v), &q, &dq);
        check_gradient(&what("keys"), &|k| f(&q, k, &v), &k, &dk);
        check_gradient(&what("values"), &|v| f(&q, &k, v), &v, &dv);
    }
}

fn products(n_threads: usize, precision: ProductPrecision) -> Products {
    Products::new(Workers::new(n_threads).expect("threads"), Kernels::at(IsaLevel::detect()), precision)
}

fn tensor(name: &str, shape: &[usize], dtype: DType, values: &[f32]) -> Tensor {
    let mut data = vec![0; values.len() / dtype.block_len() * dtype.block_bytes()];
    (dtype.encoder().expect("a format that we write"))(values, &mut data);
    let data = SharedBytes::from_vec(data);
    Tensor::host(&TensorView { name, dtype, shape, data }).expect("a valid tensor")
}

/// Largest difference of a product from that in double precision.
fn product_error(found: &[f32], a: &[f32], b: &dyn Fn(usize, usize) -> f32, k: usize, before: f64) -> f64 {
    let n = found.len() * k / a.len();
    let error = |(i, found): (usize, &f32)| {
        let column: Vec<f32> = (0..k).map(|k| b(k, i % n)).collect();
        (f64::from(*found) - before - weighted(&a[i / n * k..][..k], &column)).abs()
    };
    found.iter().enumerate().map(error).fold(0.0, f64::max)
}

/// Float32 everywhere, and integers where a matrix is quantized. Their tolerance is 1e-3 of the length of a sum.
fn check_products(precision: ProductPrecision, tolerance: f64) {
    for (dtype, n_out, n_in) in [
        (DType::F32, 45, 70),
        (DType::BF16, 3, 513),
        (DType::Q8_0, 300, 320),
        (DType::Q4_K, 33, 512),
        (DType::Q8_0, 2100, 32),
        (DType::Q8_0, 5, 2400),
    ] {
        let w = tensor("w", &[n_out, n_in], dtype, &numbers(n_out * n_in, 1));
        let decoded = w.decode();
        for n_rows in [1, 7, 40] {
            let (x, dy) = (numbers(n_rows * n_in, 2), numbers(n_rows * n_out, 3));
            let mut all = Vec::new();
            for n_threads in [1, 3] {
                // What is overwritten does not matter.
                let (mut y, mut dx) = (vec![0.5; n_rows * n_out], vec![f32::NAN; n_rows * n_in]);
                let mut products = products(n_threads, precision);
                let multiplied =
                    products.multiply_frozen(&x, &w, Direction::Forward, PanelOutput::Add, &mut y);
                multiplied.expect("no panic");
                let output = PanelOutput::Overwrite;
                products.multiply_frozen(&dy, &w, Direction::Backward, output, &mut dx).expect("no panic");
                all.push((y, dx));
            }
            assert_eq!(all[0], all[1], "the number of threads changed a bit");
            let (y, dx) = &all[0];
            let error = product_error(y, &x, &|k, o| decoded[o * n_in + k], n_in, 0.5);
            assert!(error < tolerance * (n_in as f64).sqrt(), "{dtype} {n_rows} rows: y is off by {error}");
            let error = product_error(dx, &dy, &|k, i| decoded[k * n_in + i], n_out, 0.0);
            assert!(error < tolerance * (n_out as f64).sqrt(), "{dtype} {n_rows} rows: dx is off by {error}");
        }
    }
}

#[test]
fn products_in_both_directions() {
    check_products(ProductPrecision::Float32, 1e-5);
}

#[test]
fn products_of_integers() {
    check_products(ProductPrecision::Integer16, 1e-3);
}

/// A matrix of floats is multiplied in float32 whatever the precision.
#[test]
fn integers_are_for_quantized_matrices() {
    let (values, x) = (numbers(64 * 64, 1), numbers(9 * 64, 2));
    for (dtype, may_differ) in [(DType::F32, false), (DType::BF16, false), (DType::Q8_0, true)] {
        let w = tensor("w", &[64, 64], dtype, &values);
        let [exact, rounded] = [ProductPrecision::Float32, ProductPrecision::Integer16].map(|precision| {
            let mut y = vec![0.0; 9 * 64];
            let output = PanelOutput::Overwrite;
            let multiplied =
                products(2, precision).multiply_frozen(&x, &w, Direction::Forward, output, &mut y);
            multiplied.expect("no panic");
            y
        });
        let has_integers = integer_panel::find(IsaLevel::detect()).is_some();
        assert_eq!(exact != rounded, may_differ && has_integers, "{dtype}");
    }
}

#[test]
fn outer_products() {
    for (n_x, n_y) in [(5, 40), (40, 5)] {
        let (x, dy) = (numbers(300 * n_x, 1), numbers(300 * n_y, 2));
        let mut gradient = vec![1.0; n_x * n_y];
        products(2, ProductPrecision::Float32)
            .add_outer(&x, &dy, (n_x, n_y), &mut gradient)
            .expect("no panic");
        for i in 0..n_y {
            for j in 0..n_x {
                let terms = (0..300).map(|t| f64::from(dy[t * n_y + i]) * f64::from(x[t * n_x + j]));
                let want = 1.0 + terms.sum::<f64>();
                assert!((f64::from(gradient[i * n_x + j]) - want).abs() < 1e-4, "[{i}, {j}]");
            }
        }
    }
}

const D: usize = 16;
const VOCAB: usize = 23;
const RANK: usize = 3;

/// A model with every operation that can be trained: two layers, and pairs beside all matrices of the second.
struct SmallModel {
    graph: GraphBuilder,
    trained: HashMap<String, TrainedRows>,
    parameters: Vec<Parameter>,
    n_tensors: usize,
}

impl SmallModel {
    fn weight(&mut self, shape: &[usize], dtype: DType) -> Tensor {
        self.n_tensors += 1;
        let n: usize = shape.iter().product();
        let values: Vec<f32> = numbers(n, 50 + self.n_tensors).iter().map(|x| 0.5 * x).collect();
        tensor(&format!("w{}", self.n_tensors), shape, dtype, &values)
    }

    fn product(&mut self, x: ValueId, n_out: usize, is_trained: bool) -> ValueId {
        let n_in = self.graph.width(x);
        let (weight, bias) = (self.weight(&[n_out, n_in], DType::F32), self.weight(&[n_out], DType::F32));
        let y = self.graph.matmul("y", x, &weight, Some(&bias)).expect("a product");
        if !is_trained {
            return y;
        }
        let mut placeholder = |shape: [usize; 2]| {
            let (parameter, values) =
                (self.parameters.len(), numbers(shape[0] * shape[1], 90 + self.parameters.len()));
            self.parameters.push(values.iter().map(|x| 0.5 * x).collect());
            let name = format!("trained{parameter}");
            // The rows of the parameter are in reverse order.
            let rows = TrainedRows { parameter, rows: (0..shape[0]).rev().collect() };
            self.trained.insert(name.clone(), rows);
            tensor(&name, &shape, DType::F32, &vec![0.0; shape[0] * shape[1]])
        };
        let (a, b) = (placeholder([RANK, n_in]), placeholder([n_out, RANK]));
        let low = self.graph.matmul("low", x, &a, None).expect("a product");
        let low = self.graph.scale("scaled", low, 0.7).expect("a factor");
        let high = self.graph.matmul("high", low, &b, None).expect("a product");
        self.graph.add("sum", y, high).expect("a sum")
    }

    fn layer(&mut self, mut x: ValueId, layer: usize, is_trained: bool) -> ValueId {
        let norm = self.weight(&[D], DType::F32);
        let normed = self.graph.rms_norm_groups("norm", x, Some(&norm), 1.0, 1e-3, D).expect("a norm");
        let (q, k) = (self.product(normed, 32, is_trained), self.product(normed, 16, is_trained));
        let v = self.product(normed, 16, is_trained);
        let head_norm = self.weight(&[8], DType::F32);
        let rotate = |model: &mut Self, x: ValueId, n_heads: usize| {
            let style = if layer == 0 { RopeStyle::Half } else { RopeStyle::Interleaved };
            let inv_freq = [1.0, 0.3, 0.1].into();
            let rope =
                RopeShape { n_heads, head_dim: 8, n_rot: 6, inv_freq, axes: [].into(), mscale: 1.1, style };
            let x = model.graph.rms_norm_groups("heads", x, Some(&head_norm), 1.0, 1e-3, 8).expect("a norm");
            let x = model.graph.rope("rope", x, &rope).expect("a rotation");
            model.graph.position_scale("positions", x, 0.2, 3).expect("a factor")
        };
        let (q, k) = (rotate(self, q, 4), rotate(self, k, 2));
        self.graph.kv_write("kv", k, v, layer).expect("a write");
        let window = (layer == 0).then_some(4);
        let shape = AttentionShape { layer, ..attention(window, Some(2.0)) };
        let attended = self.graph.attention("attention", q, shape).expect("attention");
        let out = self.product(attended, D, is_trained);
        x = self.graph.add("residual", x, out).expect("a sum");
        let (weight, bias) = (self.weight(&[D], DType::F32), self.weight(&[D], DType::F32));
        let normed = self.graph.layer_norm("layer norm", x, &weight, Some(&bias), 1e-3).expect("a norm");
        let (gate, up) = (self.product(normed, 24, is_trained), self.product(normed, 24, is_trained));
        let mut unit = self.graph.glu("unit", gate, up, Activation::GeluTanh).expect("a unit");
        if layer == 1 {
            unit = self.graph.activate("activation", unit, Activation::Silu).expect("an activation");
        }
        let down = self.product(unit, D, is_trained);
        let post = self.weight(&[D], DType::F32);
        let down = self.graph.rms_norm("post norm", down, &post, 1e-3).expect("a norm");
        self.graph.add("residual", x, down).expect("a sum")
    }

    fn build(n_threads: usize) -> (TrainingPass, Vec<Parameter>) {
        let of_layer =
            KvLayerLayout { n_kv_heads: 2, head_dim: 8, precision: KvDType::F32.both(), window: None };
        let windowed = KvLayerLayout { window: Some(4), ..of_layer };
        let kv = KvLayout { layers: vec![windowed, of_layer], page_len: PAGE_LEN, states: Vec::new() };
        let graph = GraphBuilder::new(kv).expect("a layout");
        let mut model = Self { graph, trained: HashMap::new(), parameters: Vec::new(), n_tensors: 0 };
        let table = model.weight(&[VOCAB, D], DType::F32);
        let mut x = model.graph.embed("embed", &table, 2.0).expect("a table");
        for layer in 0..2 {
            x = model.layer(x, layer, layer == 1);
        }
        let x = model.graph.output_rows("rows", x).expect("rows");
        let norm = model.weight(&[D], DType::F32);
        let x = model.graph.rms_norm("output norm", x, &norm, 1e-3).expect("a norm");
        let x = model.graph.matmul("output", x, &table, None).expect("a product");
        let x = model.graph.softcap("cap", x, 4.0).expect("a cap");
        let graph = Arc::new(model.graph.finish(x).expect("a graph"));
        let options = PassOptions { threads: Some(n_threads), ..PassOptions::default() };
        let pass = TrainingPass::new(graph, &model.trained, &options).expect("a pass");
        (pass, model.parameters)
    }
}

/// Two sequences side by side; the first learns only its second half.
fn tokens() -> (Vec<u32>, Vec<Option<u32>>) {
    let tokens: Vec<u32> = (0..17).map(|i| (i * 7 + 3) % VOCAB as u32).collect();
    let targets = (0..17).map(|i| (i > 4).then_some((i * 5 + 1) % VOCAB as u32)).collect();
    (tokens, targets)
}

fn gradients(pass: &mut TrainingPass, parameters: &[Parameter], memory: MemoryUse) -> (f64, Vec<Parameter>) {
    let (tokens, targets) = tokens();
    let batch = TrainingBatch { tokens: &tokens, targets: &targets, sequences: &[0..10, 10..17] };
    let mut sums: Vec<Parameter> = parameters.iter().map(|p| vec![0.0; p.len()]).collect();
    let scale = 1.0 / 12.0;
    let loss = pass.run(&batch, parameters, Some(GradientSums { sums: &mut sums, scale, memory }));
    (loss.expect("a loss"), sums)
}

#[test]
fn the_whole_graph() {
    let (mut pass, parameters) = SmallModel::build(2);
    let (tokens, targets) = tokens();
    let batch = TrainingBatch { tokens: &tokens, targets: &targets, sequences: &[0..10, 10..17] };
    let (loss, found) = gradients(&mut pass, &parameters, MemoryUse::KeepAll);
    assert_eq!(loss, pass.run(&batch, &parameters, None).expect("a loss"));
    assert!(loss / 12.0 > 0.5 && loss / 12.0 < 10.0, "{loss}");
    for (index, gradient) in found.iter().enumerate() {
        let pass = std::cell::RefCell::new(&mut pass);
        let f = |x: &[f32]| {
            let mut changed = parameters.clone();
            changed[index] = x.to_vec();
            pass.borrow_mut().run(&batch, &changed, None).expect("a loss") / 12.0
        };
        // Rounding of a whole pass, divided by the distance.
        check_within(&format!("parameter {index}"), &f, &parameters[index], gradient, 5e-3);
    }
}

#[test]
fn neither_memory_nor_threads_nor_company_change_a_gradient() {
    let (mut pass, parameters) = SmallModel::build(1);
    let expected = gradients(&mut pass, &parameters, MemoryUse::KeepAll);
    assert!(pass.kept_bytes(100, MemoryUse::RecomputeLayers) < pass.kept_bytes(100, MemoryUse::KeepAll) / 2);
    assert_eq!(expected, gradients(&mut pass, &parameters, MemoryUse::RecomputeLayers));
    // Again, with reused buffers and on more threads.
    assert_eq!(expected, gradients(&mut pass, &parameters, MemoryUse::KeepAll));
    let (mut other, _) = SmallModel::build(3);
    assert_eq!(expected, gradients(&mut other, &parameters, MemoryUse::RecomputeLayers));
    // The losses of two sequences do not depend on each other.
    let (tokens, targets) = tokens();
    let mut alone = 0.0;
    for part in [0..10, 10..17] {
        let sequences = &[0..part.len()];
        let batch = TrainingBatch { tokens: &tokens[part.clone()], targets: &targets[part], sequences };
        alone += pass.run(&batch, &parameters, None).expect("a loss");
    }
    assert!((alone - expected.0).abs() < 1e-9, "{alone} {}", expected.0);
}

#[test]
fn wrong_batches_are_refused() {
    let (mut pass, parameters) = SmallModel::build(1);
    let targets = [None, Some(1), Some(2)];
    for (tokens, sequences, what) in [
        (&[1, 2, VOCAB as u32][..], &[0..3][..], "token id"),
        (&[1, 2, 3][..], &[0..2][..], "rows"),
        (&[1, 2, 3][..], &[0..2, 1..3][..], "rows"),
        (&[1, 2][..], &[0..2][..], "targets"),
    ] {
        let batch = TrainingBatch { tokens, targets: &targets, sequences };
        let error = pass.run(&batch, &parameters, None).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
}
