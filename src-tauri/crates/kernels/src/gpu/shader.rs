//! Shaders as text: the table of them, and what makes one WGSL module of several files. Knows no device.
//!
//! Lines that begin with `#` are ours: `#import NAME` puts in a part once, `#define NAME [VALUE]` sets a name for the
//! whole text after it, `#ifdef`, `#ifndef`, `#else` and `#endif` choose lines, `#repeat NAME COUNT` to `#end` puts
//! lines in COUNT times with NAME as the number of each, so that what belongs in registers is named by constants.

use std::collections::{HashMap, HashSet};

use crate::matmul::gpu_packing::PACKINGS;

/// How a shader uses what is bound at an index.
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
    /// by index, in group 0
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
        /// Every kernel.
        pub static SHADERS: &[&Shader] = &[$(&$id),*];
    };
}

shaders! {
    ACTIVATE = "ops/activate", [Uniform, Uniform, Read, Write];
    ADD = "ops/add", [Uniform, Uniform, Read, Read, Write];
    ADD_NORM = "plan/fuse", [Uniform, Uniform, Read, Read, Read, Write, Write];
    ATTENTION = "ops/attention", [Uniform, Uniform, Read, Read, Read, Read, Write];
    COLUMNS = "ops/columns", [Uniform, Uniform, Read, Write];
    DELTA_NET = "ops/delta_net", [Uniform, Uniform, Read, Read, Read, Read, Read, Write, Write];
    EMBED = "ops/embed", [Uniform, Uniform, Read, Read, Write];
    EXPERT_GROUPS = "ops/expert_groups", [Uniform, Uniform, Read, Write];
    EXPERT_MATMUL = "ops/expert_matmul", [Uniform, Uniform, Read, Read, Read, Read, Write];
    EXPERT_SUM = "ops/expert_sum", [Uniform, Uniform, Read, Read, Write];
    GATED = "matmul/gated", [Uniform, Uniform, Read, Read, Write, Write, Write];
    GLU = "ops/glu", [Uniform, Uniform, Read, Read, Write];
    KV_WRITE = "ops/kv_write", [Uniform, Uniform, Read, Read, Read, Write];
    LAYER_NORM = "ops/layer_norm", [Uniform, Uniform, Read, Read, Read, Write];
    LIKELIEST = "ops/likeliest", [Uniform, Uniform, Read, Write];
    MATMUL = "matmul/generic", [Uniform, Uniform, Read, Read, Read, Write];
    MERGE = "ops/attention/merge", [Uniform, Uniform, Read, Read, Read, Write];
    MOE_ROUTE = "ops/moe_route", [Uniform, Uniform, Read, Read, Write];
    NORM_ROTATE = "plan/norm_rotate", [Uniform, Uniform, Read, Read, Read, Write, Read, Write, Write, Read];
    OUTPUT_ROWS = "ops/output_rows", [Uniform, Uniform, Read, Read, Write];
    RMS_NORM = "ops/rms_norm", [Uniform, Uniform, Read, Read, Write];
    ROTATE = "plan/rotate", [Uniform, Uniform, Read, Read, Read, Write, Read, Write, Write];
    ROPE = "ops/rope", [Uniform, Uniform, Read, Read, Write];
    SANDWICH = "plan/sandwich", [Uniform, Uniform, Read, Read, Read, Write, Write, Read];
    SCALE = "ops/scale", [Uniform, Uniform, Read, Read, Write];
    SHORT_CONV = "ops/short_conv", [Uniform, Uniform, Read, Read, Read, Read, Write, Write];
    SOFTCAP = "ops/softcap", [Uniform, Uniform, Read, Write];
}

macro_rules! parts {
    ($($name:literal = $path:literal;)*) => {
        /// What shaders import.
        const PARTS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../", $path, ".wgsl")))),*];
    };
}

parts! {
    "activate" = "ops/activate";
    "add_norm" = "plan/fuse";
    "batch" = "plan/batch";
    "blocks32" = "matmul/blocks32";
    "cooperative" = "matmul/cooperative";
    "dot" = "ops/dot";
    "exp" = "ops/exp";
    "expert_groups" = "ops/expert_groups";
    "kv_rows" = "ops/kv_rows";
    "kv_write" = "ops/kv_write";
    "partial_sums" = "matmul/partial_sums";
    "tile" = "matmul/tile";
}

/// A number that another text of any shader changes.
pub fn fingerprint() -> u64 {
    let sources = SHADERS.iter().map(|shader| shader.source).chain(PARTS.iter().map(|(_, source)| *source));
    let sources = sources.chain(PACKINGS.iter().map(|packing| packing.source));
    // FNV-1a
    sources
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What `weight` is when a shader imports it.
const WEIGHT: &str = "weight";

/// A name that is set, and the number that it stands for.
pub type Define<'a> = (&'a str, Option<u32>);

/// The module of `source`, with `defines` set before its first line and `weight` as the part of that name.
/// Errors: a part that there isn't, an `#endif` or `#end` too many or too few, a count that is no number.
pub fn expand(
    source: &'static str,
    defines: &[Define],
    weight: Option<&'static str>,
) -> Result<String, String> {
    let mut text = Text { weight, ..Text::default() };
    for (name, value) in defines {
        text.defines.insert((*name).to_owned(), value.map(|n| format!("{n}u")));
    }
    text.add(source)?;
    match text.chosen.is_empty() {
        true => Ok(text.out),
        false => Err("an #ifdef without its #endif".to_owned()),
    }
}

#[derive(Default)]
struct Text {
    out: String,
    weight: Option<&'static str>,
    defines: HashMap<String, Option<String>>,
    imported: HashSet<String>,
    /// of the conditions around the line, which are true
    chosen: Vec<bool>,
}

impl Text {
    fn add(&mut self, source: &str) -> Result<(), String> {
        self.add_lines(&source.lines().collect::<Vec<_>>())
    }

    fn add_lines(&mut self, lines: &[&str]) -> Result<(), String> {
        let mut rest = lines;
        while let [line, after @ ..] = rest {
            rest = after;
            match line.trim_start().strip_prefix('#') {
                Some(order) if order.starts_with(REPEAT) => {
                    let len = len_of_repeated(after).ok_or("a #repeat without its #end")?;
                    if self.is_on() {
                        self.repeat(&order[REPEAT.len()..], &after[..len])?;
                    }
                    rest = &after[len + 1..];
                }
                Some(order) => self.obey(order)?,
                None if self.is_on() => self.copy(line),
                None => {}
            }
        }
        Ok(())
    }

    /// `order` is a name and how often.
    fn repeat(&mut self, order: &str, lines: &[&str]) -> Result<(), String> {
        let (name, count) = order.trim().split_once(' ').ok_or("a #repeat without a count")?;
        let value = self.defines.get(count).cloned().flatten();
        let number = value.as_deref().unwrap_or(count).trim_end_matches('u').parse::<u32>();
        for n in 0..number.map_err(|_| format!("{count} is no number"))? {
            self.defines.insert(name.to_owned(), Some(format!("{n}u")));
            self.add_lines(lines)?;
        }
        self.defines.remove(name);
        Ok(())
    }

    fn is_on(&self) -> bool {
        self.chosen.iter().all(|chosen| *chosen)
    }

    fn obey(&mut self, order: &str) -> Result<(), String> {
        let (verb, rest) = order.split_once(' ').unwrap_or((order, ""));
        let rest = rest.trim();
        match verb.trim() {
            "ifdef" => self.chosen.push(self.defines.contains_key(rest)),
            "ifndef" => self.chosen.push(!self.defines.contains_key(rest)),
            "else" => {
                let last = self.chosen.last_mut().ok_or("an #else without its #ifdef")?;
                *last = !*last;
            }
            "endif" => _ = self.chosen.pop().ok_or("an #endif without its #ifdef")?,
            _ if !self.is_on() => {}
            "define" => {
                let (name, value) = rest.split_once(' ').map_or((rest, None), |(n, v)| (n, Some(v.trim())));
                self.defines.insert(name.to_owned(), value.map(str::to_owned));
            }
            "import" => {
                if self.imported.insert(rest.to_owned()) {
                    let part = match rest {
                        WEIGHT => self.weight,
                        name => PARTS.iter().find(|(part, _)| *part == name).map(|(_, source)| *source),
                    };
                    self.add(part.ok_or_else(|| format!("there is no part {rest}"))?)?;
                }
            }
            other => return Err(format!("#{other} is no order")),
        }
        Ok(())
    }

    /// A line with its names replaced.
    fn copy(&mut self, line: &str) {
        let mut rest = line;
        while let Some(start) = rest.find(is_of_word) {
            let len = rest[start..].find(|c| !is_of_word(c)).unwrap_or(rest.len() - start);
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

/// Lines before the `#end` of what is repeated.
fn len_of_repeated(lines: &[&str]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|line| {
        let order = line.trim_start().strip_prefix('#').unwrap_or("").trim_end();
        depth += usize::from(order.starts_with(REPEAT));
        if order == "end" && depth > 0 {
            depth -= 1;
            return false;
        }
        order == "end"
    })
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use wgpu::naga;

    use super::super::features::Used;
    use super::super::pipeline::Variant;
    use super::super::shapes::{ONE_ROWS, TILES};
    use super::*;
    use crate::matmul::gated::GATED_LANES;
    use crate::matmul::gpu_packing::{PACKINGS, Packing};
    use crate::matmul::partial_sums::{self, ShaderConstants};
    use crate::matmul::tile;

    #[test]
    fn lines_are_chosen_and_names_replaced() {
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
    fn parts_come_once_and_mistakes_are_named() {
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

    /// Names and numbers that a shader is made with.
    fn variants(shader: &Shader) -> Vec<(&'static [&'static str], ShaderConstants)> {
        let plain = |all: &[&'static [&'static str]]| {
            all.iter().map(|names| (*names, ShaderConstants::new())).collect()
        };
        match shader.name {
            "ops/scale" => plain(&[&[], &["BY_POSITION"], &["BY_GATE"]]),
            "ops/activate" | "ops/expert_groups" => plain(&[&["MAIN"]]),
            "ops/kv_write" | "plan/rotate" | "plan/norm_rotate" => {
                plain(&[&["KV_F32"], &["KV_F16"], &["KV_Q8_0"], &["KV_Q4_0"]])
            }
            "ops/attention" => plain(&[
                &["KV_F32"],
                &["KV_F16", "EIGHT"],
                &["KV_F16", "AGED"],
                &["KV_F32", "AGED", "EIGHT"],
                &["KV_Q8_0"],
                &["KV_Q4_0", "EIGHT"],
            ]),
            "matmul/generic" => vec![
                (&["WHOLE"], ONE_ROWS[0].1.constants()),
                (&["WHOLE"], ONE_ROWS[1].1.constants()),
                (&["WHOLE"], ONE_ROWS[2].1.constants()),
                (&[], partial_sums::FEW_ROWS.constants()),
                (&["WHOLE", "TILED"], TILES[0].1.constants()),
                (&["WHOLE", "TILED"], TILES[1].1.constants()),
                (&["TILED"], TILES[2].1.constants()),
                (&["TILED", "COOPERATIVE", "WHOLE"], tile::COOPERATIVE.constants()),
            ],
            "matmul/gated" => vec![(&["WHOLE"], GATED_LANES.constants()), (&[], GATED_LANES.constants())],
            "ops/expert_matmul" => vec![
                (&["WHOLE"], partial_sums::ONE_ROW.constants()),
                (&[], partial_sums::ONE_ROW.constants()),
                (&["WHOLE", "TILED"], tile::SMALL.constants()),
                (&["TILED"], tile::SMALL.constants()),
                (&["TILED", "COOPERATIVE"], tile::COOPERATIVE.constants()),
            ],
            _ => plain(&[&[]]),
        }
    }

    /// Every module that a device may be given, with subgroups of no, eight and 32 lanes: (name, source, bindings).
    fn modules() -> Vec<(String, String, &'static [Access])> {
        let mut modules = Vec::new();
        for shader in SHADERS {
            let weights: Vec<Option<&Packing>> = match shader.source.contains("#import weight") {
                true => PACKINGS.iter().map(|packing| Some(*packing)).collect(),
                false => vec![None],
            };
            for (defines, sizes) in variants(shader) {
                for (weight, shuffles) in weights.iter().flat_map(|weight| [0, 3, 5].map(|n| (*weight, n))) {
                    let variant = Variant { defines, weight, sizes: sizes.clone() };
                    let matrices = defines.contains(&"COOPERATIVE");
                    let used = Used { shuffles, halves: shuffles == 5 || matrices, matrices };
                    let name = format!("{} {used:?}", variant.name(shader));
                    let defines: Vec<Define> = used.defines().into_iter().chain(variant.defines()).collect();
                    let source = weight.map(|packing| packing.source);
                    let module = expand(shader.source, &defines, source).expect(&name);
                    modules.push((name, module, shader.bindings));
                }
            }
        }
        modules
    }

    /// What each module declares is what its row says: index by index, nothing more and nothing less.
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
