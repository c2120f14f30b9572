//! Fine-tuning: trains low-rank matrices (LoRA) beside the frozen weights of a model, in any block format.
//!
//! The forward pass is the decoder's graph, from which `pass` derives the backward pass. Families need no code here.

mod adapter_file;
mod batch_file;
mod csv;
mod data_file;
mod dataset;
mod encode;
mod lora;
mod optimizer;
mod pass;
mod run;
mod safetensors;
mod state;
mod trainer;
mod weight_source;

pub use batch_file::FixedBatch;
pub use data_file::{DataContent, DataFormat, DataItem, is_learned_answer, parse};
pub use dataset::{Dataset, LabelledExample, SkippedItem};
pub use encode::ExampleEncoder;
pub use lora::{LoraShape, PairNames};
pub use optimizer::{AdamW, LearningRate};
pub use pass::{Parameter, ProductPrecision};
pub use run::{RunSettings, StepReport, TuneRun};
pub use trainer::{Trainer, TrainerOptions, TrainingExample};
