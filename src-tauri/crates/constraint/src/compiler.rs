//! Compiles forms for one vocabulary.

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::InferenceCapabilities;
use llguidance::{JsonCompileOptions, Matcher, ParserFactory, TokenParser};
use serde_json::{Value, json};

use crate::error::ConstraintError;
use crate::form::{TextForm, TextPart};
use crate::schema::{InstanceChecker, Relaxation, RelaxedSchema, normalized};
use crate::state::TokenConstraint;
use crate::vocabulary::Vocabulary;

/// White space between JSON tokens that a model may write: a space, or a line break with indentation. Without a bound
/// small models write nothing else.
const MODEL_WHITESPACE: &str = r"(?:\x20|\x0A[\x20\x09]{0,20})";

/// Largest schema, regular expression or grammar, in bytes of text. Compilation takes longer than its size.
const MAX_SOURCE_BYTES: usize = 1 << 20;

/// Which white space a JSON text may have between its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whitespace {
    /// As much as a model needs.
    Bounded,
    /// As JSON has it.
    Any,
}

/// Compiles constraints for one vocabulary.
pub struct Compiler {
    factory: ParserFactory,
    vocabulary: Vocabulary,
    whitespace: Whitespace,
}

impl std::fmt::Debug for Compiler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compiler").field("vocabulary", &self.vocabulary).finish_non_exhaustive()
    }
}

impl Compiler {
    /// Prepares a vocabulary, which takes a moment for a large one.
    ///
    /// Errors: `constraint.vocabulary`.
    pub fn new(vocabulary: Vocabulary, whitespace: Whitespace) -> Result<Self, ConstraintError> {
        let slices = SlicedBiasComputer::general_slices();
        let factory = ParserFactory::new(&vocabulary.env, InferenceCapabilities::default(), &slices);
        let mut factory = factory.map_err(|error| {
            let remedy = "Download the model again, or choose another one.";
            let message = format!("The model's vocabulary cannot be used for constraints: {error}");
            ConstraintError::new("constraint.vocabulary", message, remedy)
        })?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { factory, vocabulary, whitespace })
    }

    /// Compiles a form.
    ///
    /// Errors: `constraint.invalid` with the reason, `constraint.too_large`.
    pub fn compile(&self, form: &TextForm) -> Result<TokenConstraint, ConstraintError> {
        check_size(form)?;
        match form {
            TextForm::JsonObject => self.compile_schema(&json!({ "type": "object" }), Relaxation::default()),
            TextForm::JsonSchema(schema) => self.compile_schema(schema, Relaxation::default()),
            TextForm::Regex(regex) => {
                let grammar = TopLevelGrammar::from_regex(regex);
                self.compile_grammar(grammar, "regular expression")
            }
            TextForm::Lark(lark) => self.compile_grammar(TopLevelGrammar::from_lark(lark.clone()), "grammar"),
            TextForm::Sequences(sequences) => self.compile_sequences(sequences),
        }
    }

    /// As `compile` of a JSON schema, for texts that somebody else wrote: properties may come in any order, and numbers
    /// in lists of values be spelled in any way.
    ///
    /// Errors: as `compile`.
    pub fn compile_unordered(&self, schema: &Value) -> Result<TokenConstraint, ConstraintError> {
        self.compile_schema(schema, Relaxation::any_order())
    }

    fn compile_grammar(
        &self,
        grammar: TopLevelGrammar,
        what: &str,
    ) -> Result<TokenConstraint, ConstraintError> {
        let parser = self.parser(grammar).map_err(|reason| ConstraintError::uncompilable(what, &reason))?;
        Ok(TokenConstraint::new(Matcher::new(Ok(parser)), None, self.vocabulary.clone()))
    }

    /// Compiles what of a schema a grammar can express; the rest is checked on whole values.
    fn compile_schema(
        &self,
        schema: &Value,
        mut relaxation: Relaxation,
    ) -> Result<TokenConstraint, ConstraintError> {
        let schema = &normalized(schema);
        let (parser, relaxed) = loop {
            let relaxed = RelaxedSchema::new(schema, relaxation);
            let grammar = self.schema_grammar(&relaxed.schema, relaxation);
            match self.parser(TopLevelGrammar::from_grammar(grammar)) {
                Ok(parser) => break (parser, relaxed),
                Err(reason) => match relaxation.after(&reason) {
                    Some(further) => relaxation = further,
                    None => return Err(ConstraintError::uncompilable("JSON schema", &reason)),
                },
            }
        };
        let checker = match relaxed.checked.is_empty() {
            true => None,
            false => Some(InstanceChecker::new(schema, relaxed.checked)?),
        };
        Ok(TokenConstraint::new(Matcher::new(Ok(parser)), checker, self.vocabulary.clone()))
    }

    fn compile_sequences(&self, sequences: &[Vec<TextPart>]) -> Result<TokenConstraint, ConstraintError> {
        let mut relaxation = Relaxation::default();
        loop {
            let lark = self.lark(sequences, relaxation);
            match self.parser(TopLevelGrammar::from_lark(lark)) {
                Ok(parser) => {
                    return Ok(TokenConstraint::new(Matcher::new(Ok(parser)), None, self.vocabulary.clone()));
                }
                Err(reason) => match relaxation.after(&reason) {
                    Some(further) => relaxation = further,
                    None => return Err(ConstraintError::uncompilable("form of the tool call", &reason)),
                },
            }
        }
    }

    /// A grammar with a rule for each sequence.
    fn lark(&self, sequences: &[Vec<TextPart>], relaxation: Relaxation) -> String {
        let names: Vec<String> = (0..sequences.len()).map(|at| format!("sequence_{at}")).collect();
        let mut lark = format!("start: {}\n", names.join(" | "));
        for (name, parts) in names.iter().zip(sequences) {
            lark.push_str(&format!("{name}: {}\n", self.lark_parts(parts, relaxation)));
        }
        lark
    }

    fn lark_parts(&self, parts: &[TextPart], relaxation: Relaxation) -> String {
        let written = parts.iter().map(|part| match part {
            TextPart::Literal(text) => Value::from(text.as_str()).to_string(),
            TextPart::Token(id) => format!("<[{id}]>"),
            TextPart::Json(schema) => {
                let relaxed = RelaxedSchema::new(&normalized(schema), relaxation).schema;
                format!("%json {}", self.with_options(&relaxed, relaxation))
            }
            TextPart::AnyText => "/(?s:.*)/".to_owned(),
            TextPart::Optional(parts) => format!("({})?", self.lark_parts(parts, relaxation)),
        });
        written.collect::<Vec<_>>().join(" ")
    }

    fn schema_grammar(&self, schema: &Value, relaxation: Relaxation) -> GrammarWithLexer {
        GrammarWithLexer::from_json_schema(self.with_options(schema, relaxation))
    }

    /// A schema with the options of its compilation.
    fn with_options(&self, schema: &Value, relaxation: Relaxation) -> Value {
        let mut schema = match schema {
            Value::Bool(true) => json!({}),
            Value::Bool(false) => json!({ "enum": [] }),
            other => other.clone(),
        };
        let whitespace_pattern = match self.whitespace {
            Whitespace::Bounded => Some(MODEL_WHITESPACE.to_owned()),
            Whitespace::Any => None,
        };
        let options = JsonCompileOptions {
            whitespace_pattern,
            coerce_one_of: relaxation.one_of_as_any_of,
            json_allow_general_unicode_escapes: true,
            ..JsonCompileOptions::default()
        };
        if schema.is_object() {
            options.apply_to(&mut schema);
        }
        schema
    }

    /// A panic of the library is an error of this constraint alone.
    fn parser(&self, grammar: TopLevelGrammar) -> Result<TokenParser, String> {
        let made =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.factory.create_parser(grammar)));
        match made {
            Ok(Ok(parser)) => Ok(parser),
            Ok(Err(error)) => Err(format!("{error:#}")),
            Err(_) => Err("the grammar library failed".into()),
        }
    }
}

fn check_size(form: &TextForm) -> Result<(), ConstraintError> {
    let n_bytes = match form {
        TextForm::JsonObject => 0,
        TextForm::JsonSchema(schema) => schema.to_string().len(),
        TextForm::Regex(text) | TextForm::Lark(text) => text.len(),
        TextForm::Sequences(sequences) => sequences.iter().flatten().map(part_bytes).sum(),
    };
    if n_bytes > MAX_SOURCE_BYTES {
        let message = format!("The constraint has {n_bytes} bytes; {MAX_SOURCE_BYTES} are allowed.");
        return Err(ConstraintError::new("constraint.too_large", message, "Shorten it."));
    }
    Ok(())
}

fn part_bytes(part: &TextPart) -> usize {
    match part {
        TextPart::Literal(text) => text.len(),
        TextPart::Json(schema) => schema.to_string().len(),
        TextPart::Token(_) | TextPart::AnyText => 0,
        TextPart::Optional(parts) => parts.iter().map(part_bytes).sum(),
    }
}
