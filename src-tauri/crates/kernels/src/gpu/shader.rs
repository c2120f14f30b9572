//! The table of shaders, and the preprocessor that makes one WGSL module of several files. Knows no device.
//!
//! Directives: `#import NAME` inserts a module once. `#define NAME [VALUE]` defines a name for the text after it.
//! `#ifdef`, `#ifndef`, `#else` and `#endif` select lines. `#repeat NAME COUNT` … `#end` inserts lines COUNT times with
//! NAME as the index, so that arrays indexed by constants stay in registers.

use std::collections::{HashMap, HashSet};

use crate::matmul::gpu_packing::PACKINGS;

/// How a shader uses a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Uniform,
    Read,
    Write,
}

/// One kernel in WGSL.
pub struct Shader {
    pub name: &'static str,
    pub source: &'static str,
    /// bindings of group 0 by index
    pub bindings: &'static [Access],
}

use Access::{Read, Uniform, Write};

macro_rules! shaders {
    ($($id:ident = $path:literal, $bindings:expr;)*) => {
        $(pub static $id: Shader = Shader {
            name: $path,
            source: include_str!(concat!("../", $path, ".wgsl")),
            bindings: &$bindings,
        };)*
        /// All shaders.
        pub static SHADERS: &[&Shader] = &[$(&$id),*];
    };
}

shaders! {
    ACTIVATE = "ops/activate", [Uniform, Uniform, Read, Write];
    ADD = "ops/add", [Uniform, Uniform, Read, Read, Write];
    ADD_NORM = "plan/add_norm", [Uniform, Uniform, Read, Read, Read, Write, Write];
    ATTENTION = "ops/attention", [Uniform, Uniform, Read, Read, Read, Read, Write];
    ATTENTION_OF_PROMPTS = "ops/attention/prompt", [Uniform, Uniform, Read, Read, Read, Read, Write];
    CLAMP = "ops/clamp", [Uniform, Uniform, Read, Write];
    COLUMNS = "ops/columns", [Uniform, Uniform, Read, Write];
    DELTA_NET = "ops/delta_net", [Uniform, Uniform, Read, Read, Read, Read, Read, Write, Write];
    EMBED = "ops/embed", [Uniform, Uniform, Read, Read, Write];
    EXPERT_GROUPS = "ops/expert_groups", [Uniform, Uniform, Read, Write];
    EXPERT_MATMUL = "ops/expert_matmul", [Uniform, Uniform, Read, Read, Read, Read, Write];
    EXPERT_SUM = "ops/expert_sum", [Uniform, Uniform, Read, Read, Write];
    GATED = "matmul/gated", [Uniform, Uniform, Read, Read, Write, Write, Write];
    GAUSSIAN_TOP_K = "ops/gaussian_top_k", [Uniform, Uniform, Read, Write];
    GIVEN = "ops/given", [Uniform, Uniform, Read, Read, Write];
    GLU = "ops/glu", [Uniform, Uniform, Read, Read, Write];
    HADAMARD = "ops/hadamard", [Uniform, Uniform, Read, Write];
    JOIN_COLUMNS = "ops/join_columns", [Uniform, Uniform, Read, Read, Write];
    KV_WRITE = "ops/kv_write", [Uniform, Uniform, Read, Read, Read, Write];
    LAYER_NORM = "ops/layer_norm", [Uniform, Uniform, Read, Read, Read, Write];
    MATCH_RMS = "ops/match_rms", [Uniform, Uniform, Read, Read, Write];
    MATMUL = "matmul/generic", [Uniform, Uniform, Read, Read, Read, Write];
    MERGE = "ops/attention/merge", [Uniform, Uniform, Read, Read, Read, Write];
    MERGE_ROWS = "ops/merge_rows", [Uniform, Uniform, Read, Read, Write];
    MIX = "ops/mix", [Uniform, Uniform, Read, Read, Read, Write];
    MOE_ROUTE = "ops/moe_route", [Uniform, Uniform, Read, Read, Write];
    MOE_ROUTE_BY_SCORE = "ops/moe_route_by_score", [Uniform, Uniform, Read, Read, Read, Write];
    NORM_ADD_NORM = "plan/norm_add_norm", [Uniform, Uniform, Read, Read, Read, Write, Write, Read];
    NORM_ROPE_KV_WRITE = "plan/norm_rope_kv_write",
        [Uniform, Uniform, Read, Read, Read, Write, Read, Write, Write, Read];
    OUTPUT_ROWS = "ops/output_rows", [Uniform, Uniform, Read, Read, Write];
    RMS_NORM = "ops/rms_norm", [Uniform, Uniform, Read, Read, Write];
    PRODUCT = "matmul/product", [Uniform, Read, Read, Write];
    ROUTE_ALL = "ops/route_all", [Uniform, Uniform, Write];
    ROPE_KV_WRITE = "plan/rope_kv_write", [Uniform, Uniform, Read, Read, Read, Write, Read, Write, Write];
    ROPE = "ops/rope", [Uniform, Uniform, Read, Read, Write];
    SCALE = "ops/scale", [Uniform, Uniform, Read, Read, Write];
    SHORT_CONV = "ops/short_conv", [Uniform, Uniform, Read, Read, Read, Read, Write, Write];
    SOFTCAP = "ops/softcap", [Uniform, Uniform, Read, Write];
    SSM = "ops/ssm", [Uniform, Uniform, Read, Read, Read, Read, Write, Write];
    TOP_K = "ops/top_k", [Uniform, Uniform, Read, Write];
}

macro_rules! modules {
    ($($name:literal = $path:literal;)*) => {
        /// Modules that shaders import, by name.
        const MODULES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../", $path, ".wgsl")))),*];
    };
}

modules! {
    "activate" = "ops/activate";
    "add_norm" = "plan/add_norm";
    "attention_lanes" = "ops/attention/lanes";
    "batch" = "batch";
    "blocks32" = "matmul/blocks32";
    "cooperative" = "matmul/cooperative";
    "dot" = "ops/dot";
    "exp" = "ops/exp";
    "expert_groups" = "ops/expert_groups";
    "kv_rows" = "ops/kv_rows";
    "kv_write" = "ops/kv_write";
    "partial_sums" = "matmul/partial_sums";
    "softplus" = "ops/softplus";
    "staged_row" = "matmul/staged_row";
    "tile" = "matmul/tile";
    "visible" = "ops/attention/visible";
}

/// A hash of all shader sources (FNV-1a).
pub fn fingerprint() -> u64 {
    let sources = SHADERS.iter().map(|shader| shader.source).chain(MODULES.iter().map(|(_, source)| *source));
    let sources = sources.chain(PACKINGS.iter().map(|packing| packing.source));
    sources
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The import that the variant replaces by its weight format.
const WEIGHT: &str = "weight";

/// A defined name, and the number that replaces it.
pub type Define<'a> = (&'a str, Option<u32>);

/// Expands `source` to one module, with `defines` defined from the start and `weight` as the import of that name.
/// Errors: an unknown import, an unbalanced `#endif` or `#end`, a count that is not a number.
pub fn expand(
    source: &'static str,
    defines: &[Define],
    weight: Option<&'static str>,
) -> Result<String, String> {
    let mut text = Preprocessor { weight, ..Preprocessor::default() };
    for (name, value) in defines {
        text.defines.insert((*name).to_owned(), value.map(|n| format!("{n}u")));
    }
    text.add(source)?;
    match text.conditions.is_empty() {
        true => Ok(text.out),
        false => Err("an #ifdef without its #endif".to_owned()),
    }
}

#[derive(Default)]
struct Preprocessor {
    out: String,
    weight: Option<&'static str>,
    defines: HashMap<String, Option<String>>,
    imported: HashSet<String>,
    /// for each enclosing condition, whether it holds
    conditions: Vec<bool>,
}

impl Preprocessor {
    fn add(&mut self, source: &str) -> Result<(), String> {
        self.add_lines(&source.lines().collect::<Vec<_>>())
    }

    fn add_lines(&mut self, lines: &[&str]) -> Result<(), String> {
        let mut rest = lines;
        while let [line, after @ ..] = rest {
            rest = after;
            match line.trim_start().strip_prefix('#') {
                Some(directive) if directive.starts_with(REPEAT) => {
                    let len = len_of_repeated(after).ok_or("a #repeat without its #end")?;
                    if self.is_on() {
                        self.repeat(&directive[REPEAT.len()..], &after[..len])?;
                    }
                    rest = &after[len + 1..];
                }
                Some(directive) => self.execute(directive)?,
                None if self.is_on() => self.copy(line),
                None => {}
            }
        }
        Ok(())
    }

    /// Inserts `lines` repeatedly; `arguments` are a name and a count.
    fn repeat(&mut self, arguments: &str, lines: &[&str]) -> Result<(), String> {
        let (name, count) = arguments.trim().split_once(' ').ok_or("a #repeat without a count")?;
        let value = self.defines.get(count).cloned().flatten();
        let number = value.as_deref().unwrap_or(count).trim_end_matches('u').parse::<u32>();
        for n in 0..number.map_err(|_| format!("{count} is not a number"))? {
            self.defines.insert(name.to_owned(), Some(format!("{n}u")));
            self.add_lines(lines)?;
        }
        self.defines.remove(name);
        Ok(())
    }

    fn is_on(&self) -> bool {
        self.conditions.iter().all(|condition| *condition)
    }

    fn execute(&mut self, directive: &str) -> Result<(), String> {
        let (verb, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let rest = rest.trim();
        match verb.trim() {
            "ifdef" => self.conditions.push(self.defines.contains_key(rest)),
            "ifndef" => self.conditions.push(!self.defines.contains_key(rest)),
            "else" => {
                let last = self.conditions.last_mut().ok_or("an #else without its #ifdef")?;
                *last = !*last;
            }
            "endif" => _ = self.conditions.pop().ok_or("an #endif without its #ifdef")?,
            _ if !self.is_on() => {}
            "define" => {
                let (name, value) = rest.split_once(' ').map_or((rest, None), |(n, v)| (n, Some(v.trim())));
                self.defines.insert(name.to_owned(), value.map(str::to_owned));
            }
            "import" => {
                if self.imported.insert(rest.to_owned()) {
                    let module = match rest {
                        WEIGHT => self.weight,
                        name => MODULES.iter().find(|(module, _)| *module == name).map(|(_, source)| *source),
                    };
                    self.add(module.ok_or_else(|| format!("unknown import {rest}"))?)?;
                }
            }
            other => return Err(format!("unknown directive #{other}")),
        }
        Ok(())
    }

    /// Appends a line with defined names replaced.
    fn copy(&mut self, line: &str) {
        let mut rest = line;
        while let Some(start) = rest.find(is_word_char) {
            let len = rest[start..].find(|c| !is_word_char(c)).unwrap_or(rest.len() - start);
            let word = &rest[start..start + len];
            self.out.push_str(&rest[..start]);
            match self.defines.get(word) {
                Some(Some(value)) => self.out.push_str(value),
                Some(None) | None => self.out.push_str(word),
            }
            rest = &rest[start + len..];
        }
        self.out.push_str(rest);
        self.out.push('\n');
    }
}

const REPEAT: &str = "repeat ";

/// Number of lines before the matching `#end`.
fn len_of_repeated(lines: &[&str]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|line| {
        let directive = line.trim_start().strip_prefix('#').unwrap_or("").trim_end();
        depth += usize::from(directive.starts_with(REPEAT));
        if directive == "end" && depth > 0 {
            depth -= 1;
            return false;
        }
        directive == "end"
    })
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use wgpu::naga;

    use super::super::features::GpuFeatures;
    use super::super::kernel_shapes::{ONE_ROWS, TILES};
    use super::super::pipeline::ShaderVariant;
    use super::*;
    use crate::matmul::gated::GATED_LANES;
    use crate::matmul::gpu_packing::{PACKINGS, Packing};
    use crate::matmul::partial_sums::{self, ShaderConstants};
    use crate::matmul::tile;
    use crate::ops::attention::lanes::Specialization;
    use crate::ops::attention::prompt;

    #[test]
    fn lines_are_selected_and_names_replaced() {
        let source =
            "#define N 4u\n#ifdef A\na N;\n#ifdef B\nb\n#else\nc\n#endif\n#else\nd NN N_\n#endif\ne(N)";
        for (defines, expected) in [
            (&[][..], "d NN N_\ne(4u)\n"),
            (&[("A", None)], "a 4u;\nc\ne(4u)\n"),
            (&[("A", None), ("B", None)], "a 4u;\nb\ne(4u)\n"),
            (&[("B", None)], "d NN N_\ne(4u)\n"),
        ] {
            assert_eq!(expand(source, defines, None).as_deref(), Ok(expected), "{defines:?}");
        }
    }

    #[test]
    fn lines_are_repeated() {
        let source = "#repeat I N\n#repeat J 2\na[I][J]\n#end\nI\n#end\nI J";
        let twice = "a[0u][0u]\na[0u][1u]\n0u\na[1u][0u]\na[1u][1u]\n1u\nI J\n";
        assert_eq!(expand(source, &[("N", Some(2))], None).as_deref(), Ok(twice));
        let off = "#ifdef A\n#repeat I M\nI\n#end\n#endif\nb";
        assert_eq!(expand(off, &[], None).as_deref(), Ok("b\n"));
    }

    #[test]
    fn imports_come_once_and_mistakes_are_errors() {
        let twice = expand("#import batch\n#import batch\n", &[], None).unwrap();
        assert_eq!(twice.matches("struct Step").count(), 1);
        for wrong in [
            "#import nothing",
            "#ifdef A",
            "#endif",
            "#else",
            "#pragma once",
            "#import weight",
            "#repeat I 2\n",
            "#repeat I N\n#end",
            "#end",
        ] {
            assert!(expand(wrong, &[], None).is_err(), "{wrong}");
        }
        assert_eq!(expand("#import weight", &[], Some("w")).as_deref(), Ok("w\n"));
    }

    /// Variants of attention by turns with everything that a model may have, and with nothing of it.
    fn attention_variants(
        all: &[&'static [&'static str]],
    ) -> Vec<(&'static [&'static str], ShaderConstants)> {
        let of = |i: usize| Specialization {
            head_dim: [64, 80, 128, 256][i % 4],
            n_rows: 1 + i % 3,
            is_capped: i % 2 == 1,
            has_sinks: i % 2 == 1,
            ahead: i as u32 % 4,
            is_part: i.is_multiple_of(2),
        };
        all.iter().enumerate().map(|(i, names)| (*names, of(i).constants())).collect()
    }

    /// The definitions and sizes of a shader's variants.
    fn variants(shader: &Shader) -> Vec<(&'static [&'static str], ShaderConstants)> {
        let plain = |all: &[&'static [&'static str]]| {
            all.iter().map(|names| (*names, ShaderConstants::new())).collect()
        };
        match shader.name {
            "ops/scale" => plain(&[&[], &["BY_POSITION"], &["BY_GATE"]]),
            "ops/activate" | "ops/expert_groups" => plain(&[&["MAIN"]]),
            "ops/kv_write" | "plan/rope_kv_write" | "plan/norm_rope_kv_write" => plain(&[
                &["K_F32", "V_F32"],
                &["K_F16", "V_F16"],
                &["K_Q8_0", "V_Q8_0"],
                &["K_Q4_0", "V_Q4_0"],
                &["K_Q8_0", "V_Q4_0"],
                &["K_Q4_0", "V_Q8_0"],
                &["K_F16", "V_Q4_0"],
                &["K_Q8_0", "V_F32"],
            ]),
            "ops/attention" => attention_variants(&[
                &["K_F32", "V_F32"],
                &["K_F16", "V_F16", "EIGHT"],
                &["K_F16", "V_F16", "REQUANTIZED"],
                &["K_F32", "V_F32", "REQUANTIZED", "EIGHT"],
                &["K_Q8_0", "V_Q8_0"],
                &["K_Q4_0", "V_Q4_0", "EIGHT"],
                &["K_Q8_0", "V_Q4_0"],
                &["K_Q4_0", "V_Q8_0", "EIGHT"],
                &["K_F16", "V_Q4_0"],
                &["K_Q8_0", "V_F32", "EIGHT"],
            ]),
            "ops/attention/prompt" => {
                [64, 80, 256].map(|n| (&["COOPERATIVE"][..], prompt::constants(n, 0))).into()
            }
            "ops/rms_norm" | "plan/add_norm" | "plan/norm_add_norm" | "ops/gaussian_top_k"
            | "ops/match_rms" => {
                vec![(&[], vec![("LANES", 128), ("READS", 1)]), (&[], vec![("LANES", 512), ("READS", 5)])]
            }
            "matmul/generic" => vec![
                (&["WHOLE"], ONE_ROWS[0].1.constants()),
                (&["WHOLE"], ONE_ROWS[1].1.constants()),
                (&["WHOLE"], ONE_ROWS[2].1.constants()),
                (&[], partial_sums::FEW_ROWS.constants()),
                (&["WHOLE", "TILED"], TILES[0].1.constants()),
                (&["WHOLE", "TILED"], TILES[1].1.constants()),
                (&["TILED"], TILES[2].1.constants()),
                (&["TILED", "COOPERATIVE", "WHOLE"], tile::COOPERATIVE.constants()),
                (&["TILED", "COOPERATIVE"], tile::COOPERATIVE_SMALL.constants()),
            ],
            "matmul/product" => plain(&[&[], &["BACKWARD"]]),
            "matmul/gated" => vec![(&["WHOLE"], GATED_LANES.constants()), (&[], GATED_LANES.constants())],
            "ops/expert_matmul" => vec![
                (&["WHOLE"], partial_sums::ONE_ROW_UNSTAGED.constants()),
                (&[], partial_sums::ONE_ROW_UNSTAGED.constants()),
                (&["WHOLE", "TILED"], tile::SMALL.constants()),
                (&["TILED"], tile::SMALL.constants()),
                (&["TILED", "COOPERATIVE"], tile::COOPERATIVE_SMALL.constants()),
            ],
            _ => plain(&[&[]]),
        }
    }

    /// All modules that a device may compile, without subgroups and with those of 8 and 32 lanes: (name, source, bindings).
    fn modules() -> Vec<(String, String, &'static [Access])> {
        let mut modules = Vec::new();
        for shader in SHADERS {
            let weights: Vec<Option<&Packing>> = match shader.source.contains("#import weight") {
                true => PACKINGS.iter().map(|packing| Some(*packing)).collect(),
                false => vec![None],
            };
            for (defines, sizes) in variants(shader) {
                for (weight, shuffles) in weights.iter().flat_map(|weight| [0, 3, 5].map(|n| (*weight, n))) {
                    let variant = ShaderVariant { defines, weight, sizes: sizes.clone() };
                    let matrices = defines.contains(&"COOPERATIVE");
                    let features = GpuFeatures { shuffles, halves: shuffles == 5 || matrices, matrices };
                    let name = format!("{} {features:?}", variant.name(shader));
                    let defines: Vec<Define> =
                        features.defines().into_iter().chain(variant.defines()).collect();
                    let source = weight.map(|packing| packing.source);
                    let module = expand(shader.source, &defines, source).expect(&name);
                    modules.push((name, module, shader.bindings));
                }
            }
        }
        modules
    }

    /// Each module declares exactly the bindings of its row.
    #[test]
    fn shaders_are_valid_and_bind_what_their_rows_say() {
        use naga::valid::Capabilities;
        let capabilities = Capabilities::SHADER_FLOAT16_IN_FLOAT32
            | Capabilities::SHADER_FLOAT16
            | Capabilities::SUBGROUP
            | Capabilities::COOPERATIVE_MATRIX;
        let mut wrong = Vec::new();
        for (name, source, bindings) in modules() {
            let module = match naga::front::wgsl::parse_str(&source) {
                Ok(module) => module,
                Err(error) => {
                    wrong.push(format!("{name}: {}", error.emit_to_string(&source)));
                    continue;
                }
            };
            let flags = naga::valid::ValidationFlags::all();
            let valid = naga::valid::Validator::new(flags, capabilities).validate(&module);
            wrong.extend(valid.err().map(|error| format!("{name}: {}", error.emit_to_string(&source))));
            let mut found = vec![None; bindings.len()];
            for (_, global) in module.global_variables.iter() {
                let Some(binding) = global.binding else { continue };
                match found.get_mut(binding.binding as usize) {
                    Some(found) if binding.group == 0 => *found = access(global.space),
                    _ => wrong.push(format!("{name}: {binding:?} has no row")),
                }
            }
            if found != bindings.iter().map(|access| Some(*access)).collect::<Vec<_>>() {
                wrong.push(format!("{name}: {found:?}, not {bindings:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn access(space: naga::AddressSpace) -> Option<Access> {
        match space {
            naga::AddressSpace::Uniform => Some(Uniform),
            naga::AddressSpace::Storage { access } if access == naga::StorageAccess::LOAD => Some(Read),
            naga::AddressSpace::Storage { .. } => Some(Write),
            _ => None,
        }
    }
}
