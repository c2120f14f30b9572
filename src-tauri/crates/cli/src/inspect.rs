//! `nook inspect`: the contents of a model file, and whether it runs. An inconsistent file is an error.

use std::collections::BTreeMap;

use contract::Error;
use contract::Result;
use engine::arch;
use engine::kv::size::kv_bytes;
use engine::spec::ModelSpec;
use engine::tokenizer::Tokenizer;
use serde::Serialize;
use serde_json::{Map, Value, json};
use weights::{Array, Container, FilePartInfo, TensorView, WeightFile};

use crate::args::{Global, InspectArgs};
use crate::{open_model, out, text};

pub fn inspect(global: &Global, args: &InspectArgs) -> Result<()> {
    let file = open_model::open(&args.model, global)?;
    match &args.tensor {
        Some(name) => tensor(&file, name, args.values, global.json),
        None => inspect_file(&file, global.json),
    }
}

/// Whether the engine can run the model.
enum ModelSupport {
    Runs(Box<ModelSpec>),
    /// A valid file without a runnable model, or with an unsupported architecture.
    DoesNotRun(Error),
}

/// Errors: everything that makes loading fail, except an unknown architecture.
fn check(file: &WeightFile) -> Result<ModelSupport> {
    let family = match arch::find(file) {
        Ok(family) => family,
        Err(error) => {
            let rests = is_bare(file) || error.code() == "model.architecture_unknown";
            return if rests { Ok(ModelSupport::DoesNotRun(error.into())) } else { Err(error.into()) };
        }
    };
    if file.n_tensors() == 0 && file.metadata().get("tokenizer.ggml.tokens").is_some() {
        Tokenizer::from_weights(file)?;
        let remedy = "Use it with `nook tokenize` and `nook detokenize`.";
        return Ok(ModelSupport::DoesNotRun(Error::input(
            "model.vocabulary_only",
            "The file contains only a vocabulary.",
            remedy,
        )));
    }
    let spec = arch::spec(file, family)?;
    arch::tensors(file, family, &spec)?;
    // A safetensors folder may lack a tokenizer; the model then accepts only ids.
    if !matches!(file.container(), Container::Safetensors) || has_tokenizer(file) {
        Tokenizer::from_weights(file)?;
    }
    Ok(ModelSupport::Runs(Box::new(spec)))
}

fn has_tokenizer(file: &WeightFile) -> bool {
    ["tokenizer.json", "tokenizer.model"].iter().any(|name| file.side_file(name).is_some())
}

/// Whether these are safetensors without a configuration.
fn is_bare(file: &WeightFile) -> bool {
    matches!(file.container(), Container::Safetensors) && file.metadata().config().is_null()
}

fn inspect_file(file: &WeightFile, as_json: bool) -> Result<()> {
    let model = check(file)?;
    let mut histogram: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut parameters = 0u64;
    for tensor in file.tensors() {
        let row = histogram.entry(tensor.dtype.name()).or_default();
        row.0 += 1;
        row.1 += tensor.data.len() as u64;
        parameters += n_values(tensor.shape);
    }
    if !as_json {
        out::text(&summary(file, &model, parameters, &histogram));
        return Ok(());
    }
    let dtypes: Map<String, Value> = histogram
        .iter()
        .map(|(name, (tensors, bytes))| ((*name).to_owned(), json!({"tensors": tensors, "bytes": bytes})))
        .collect();
    let mut report = json!({
        "format": format(file),
        "path": file.path(),
        "bytes": file.len_bytes(),
        "parts": file.parts().map(|part| part_row(&part)).collect::<Vec<_>>(),
        "architecture": architecture(file),
        "parameters": parameters,
        "dtypes": dtypes,
        "context_length": Value::Null,
        "runs": matches!(model, ModelSupport::Runs(_)),
    });
    match &model {
        ModelSupport::Runs(spec) => {
            report["context_length"] = json!(spec.context_length);
            report["layers"] = json!(spec.layers.len());
            report["memory"] = memory(file, spec).into_iter().map(|row| json!(row)).collect();
        }
        ModelSupport::DoesNotRun(error) => report["problem"] = out::error_json(error),
    }
    report["tensors"] = file.tensors().map(|tensor| row(&tensor)).collect();
    report["metadata"] = metadata(file);
    out::json(&report);
    Ok(())
}

fn n_values(shape: &[usize]) -> u64 {
    shape.iter().map(|&n| n as u64).product()
}

fn part_row(part: &FilePartInfo<'_>) -> Value {
    json!({"file": part.name, "bytes": part.n_bytes, "tensors": part.n_tensors})
}

fn row(tensor: &TensorView<'_>) -> Value {
    json!({
        "name": tensor.name,
        "dtype": tensor.dtype.name(),
        "shape": tensor.shape,
        "bytes": tensor.data.len(),
    })
}

fn format(file: &WeightFile) -> String {
    match file.container() {
        Container::Gguf { version } => format!("gguf v{version}"),
        Container::Safetensors => "safetensors".into(),
    }
}

fn architecture(file: &WeightFile) -> Option<&str> {
    match file.container() {
        Container::Gguf { .. } => file.metadata().str("general.architecture").ok(),
        Container::Safetensors => file.metadata().config()["model_type"].as_str(),
    }
}

#[derive(Serialize)]
struct MemoryRow {
    context: usize,
    bytes: u64,
}

/// Memory of weights plus one sequence by context length: f16 KV cache, sliding windows and recurrent states.
fn memory(file: &WeightFile, spec: &ModelSpec) -> Vec<MemoryRow> {
    let weights: u64 = file.tensors().map(|tensor| tensor.data.len() as u64).sum();
    let kv_bytes_at = |n: usize| kv_bytes(spec, engine::KvDType::F16.both(), n, 1).total();
    let lengths =
        std::iter::successors(Some(2048usize), |n| n.checked_mul(4)).take_while(|n| *n < spec.context_length);
    let row = |context: usize| MemoryRow { context, bytes: weights + kv_bytes_at(context) };
    lengths.take(MAX_LENGTHS).chain([spec.context_length]).map(row).collect()
}

const MAX_LENGTHS: usize = 8;

fn metadata(file: &WeightFile) -> Value {
    match file.container() {
        Container::Gguf { .. } => Value::Object(
            file.metadata().iter().map(|(key, value)| (key.to_owned(), metadata_json(&value))).collect(),
        ),
        Container::Safetensors => file.metadata().config().clone(),
    }
}

fn metadata_json(value: &weights::Value<'_>) -> Value {
    use weights::Value as V;
    match value {
        V::Bool(flag) => json!(flag),
        V::F32(x) => json!(x),
        V::F64(x) => json!(x),
        V::Str(text) => json!(text),
        V::Bytes(bytes) => json!(String::from_utf8_lossy(bytes)),
        V::Array(array) => array_json(array),
        other => other.as_i64().map_or_else(|| json!(other.as_u64()), |n| json!(n)),
    }
}

/// Longer arrays are summarized.
const MAX_LISTED: usize = 64;

fn array_json(array: &Array<'_>) -> Value {
    let summary = || json!({"array": array.element().name(), "length": array.len()});
    if array.len() > MAX_LISTED {
        return summary();
    }
    let strings = array.byte_strs().ok();
    let strings = strings.map(|all| all.map(String::from_utf8_lossy).map(Value::from).collect::<Vec<_>>());
    let numbers = || array.i32s().ok().map(|all| all.into_iter().map(Value::from).collect::<Vec<_>>());
    let floats = || array.f32s().ok().map(|all| all.into_iter().map(|x| json!(x)).collect::<Vec<_>>());
    let flags = || array.bools().ok().map(|all| all.into_iter().map(Value::from).collect::<Vec<_>>());
    strings.or_else(numbers).or_else(floats).or_else(flags).map_or_else(summary, Value::Array)
}

fn summary(
    file: &WeightFile,
    model: &ModelSupport,
    parameters: u64,
    histogram: &BTreeMap<&str, (u64, u64)>,
) -> String {
    let mut rows = vec![
        vec!["format".into(), format(file)],
        vec!["size".into(), text::bytes(file.len_bytes())],
        vec!["architecture".into(), architecture(file).unwrap_or("unknown").into()],
        vec!["parameters".into(), text::count(parameters)],
        vec!["tensors".into(), file.n_tensors().to_string()],
    ];
    if file.parts().len() > 1 {
        rows.push(vec!["files".into(), file.parts().len().to_string()]);
        for part in file.parts() {
            let held = format!("{} tensors, {}", part.n_tensors, text::bytes(part.n_bytes));
            rows.push(vec![format!("  {}", part.name), held]);
        }
    }
    for (name, (tensors, bytes)) in histogram {
        rows.push(vec![format!("  {name}"), format!("{tensors} tensors, {}", text::bytes(*bytes))]);
    }
    match model {
        ModelSupport::Runs(spec) => {
            rows.push(vec!["layers".into(), spec.layers.len().to_string()]);
            rows.push(vec!["context".into(), spec.context_length.to_string()]);
            for MemoryRow { context, bytes } in memory(file, spec) {
                rows.push(vec![format!("  memory at {context}"), text::bytes(bytes)]);
            }
        }
        ModelSupport::DoesNotRun(error) => rows.push(vec!["does not run".into(), error.message().to_owned()]),
    }
    text::table(&rows)
}

#[derive(Serialize)]
struct TensorValues<'a> {
    dtype: &'a str,
    shape: &'a [usize],
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<JsonNumber>>,
}

/// A float in JSON; NaN and infinities become text.
#[derive(Serialize)]
#[serde(untagged)]
enum JsonNumber {
    Finite(f32),
    Other(&'static str),
}

impl From<f32> for JsonNumber {
    fn from(x: f32) -> Self {
        match x {
            x if x.is_nan() => Self::Other("NaN"),
            f32::INFINITY => Self::Other("Infinity"),
            f32::NEG_INFINITY => Self::Other("-Infinity"),
            x => Self::Finite(x),
        }
    }
}

fn tensor(file: &WeightFile, name: &str, values: bool, as_json: bool) -> Result<()> {
    let view = file.tensor(name).ok_or_else(|| {
        let remedy = "List the tensors with `nook inspect` without --tensor.";
        Error::input("weights.no_tensor", format!("The file has no tensor {name}."), remedy)
    })?;
    let values = if values { Some(decoded(&view)?) } else { None };
    if as_json {
        let values = values.map(|values| values.into_iter().map(JsonNumber::from).collect());
        out::json(&TensorValues { dtype: view.dtype.name(), shape: view.shape, values });
        return Ok(());
    }
    out::line(&format!(
        "{} {} {:?}, {}",
        view.name,
        view.dtype.name(),
        view.shape,
        text::bytes(view.data.len() as u64)
    ));
    for value in values.unwrap_or_default() {
        out::line(&value.to_string());
    }
    Ok(())
}

fn decoded(view: &TensorView<'_>) -> Result<Vec<f32>> {
    let codec = view.dtype.codec().ok_or_else(|| {
        Error::input(
            "weights.dtype",
            format!("Values of the format {} can't be shown: it is not supported.", view.dtype.name()),
            "Choose a tensor of another format.",
        )
    })?;
    let n = usize::try_from(n_values(view.shape)).expect("a validated tensor fits into memory");
    let mut values = vec![0.0; n];
    (codec.decode)(&view.data, &mut values);
    Ok(values)
}
