//! Shaders as text: the table of them, and what makes one WGSL module of several files. Knows no device.
//!
//! Lines that begin with `#` are ours: `#import NAME` puts in a part once, `#define NAME [VALUE]` sets a name for the
//! whole text after it, `#ifdef`, `#ifndef`, `#else` and `#endif` choose lines.

use std::collections::{HashMap, HashSet};

use crate::matmul::packed::ALL;

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
    EXPERT_MATMUL = "ops/expert_matmul", [Uniform, Uniform, Read, Read, Read, Read, Write];
    EXPERT_SUM = "ops/expert_sum", [Uniform, Uniform, Read, Read, Write];
    GLU = "ops/glu", [Uniform, Uniform, Read, Read, Write];
    KV_WRITE = "ops/kv_write", [Uniform, Uniform, Read, Read, Read, Write];
    LAYER_NORM = "ops/layer_norm", [Uniform, Uniform, Read, Read, Read, Write];
    LIKELIEST = "ops/likeliest", [Uniform, Uniform, Read, Read, Write];
    MATMUL = "matmul/generic", [Uniform, Uniform, Read, Read, Read, Write];
    MERGE = "ops/attention/merge", [Uniform, Uniform, Read, Read, Read, Write];
    MOE_ROUTE = "ops/moe_route", [Uniform, Uniform, Read, Read, Write];
    OUTPUT_ROWS = "ops/output_rows", [Uniform, Uniform, Read, Read, Write];
    RMS_NORM = "ops/rms_norm", [Uniform, Uniform, Read, Read, Write];
    ROTATE = "plan/rotate", [Uniform, Uniform, Read, Read, Read, Write, Read, Read, Write, Write];
    ROPE = "ops/rope", [Uniform, Uniform, Read, Read, Write];
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
    "batch" = "plan/batch";
    "blocks32" = "matmul/blocks32";
    "dot" = "ops/dot";
    "exp" = "ops/exp";
    "kv_rows" = "ops/kv_rows";
    "kv_write" = "ops/kv_write";
}

/// A number that another text of any shader changes.
pub fn fingerprint() -> u64 {
    let sources = SHADERS.iter().map(|shader| shader.source).chain(PARTS.iter().map(|(_, source)| *source));
    let sources = sources.chain(ALL.iter().map(|packing| packing.source));
    // FNV-1a
    sources
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What `weight` is when a shader imports it.
const WEIGHT: &str = "weight";

/// The module of `source`, with `defines` set before its first line and `weight` as the part of that name.
/// Errors: a part that there isn't, an `#endif` too many or too few.
pub fn expand(
    source: &'static str,
    defines: &[&str],
    weight: Option<&'static str>,
) -> Result<String, String> {
    let mut text = Text { weight, ..Text::default() };
    for name in defines {
        text.defines.insert((*name).to_owned(), None);
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
    fn add(&mut self, source: &'static str) -> Result<(), String> {
        for line in source.lines() {
            match line.trim_start().strip_prefix('#') {
                Some(order) => self.obey(order)?,
                None if self.is_on() => self.copy(line),
                None => {}
            }
        }
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

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use wgpu::naga;

    use super::super::tune::SHAPES;
    use super::*;

    #[test]
    fn lines_are_chosen_and_names_replaced() {
        let source =
            "#define N 4u\n#ifdef A\na N;\n#ifdef B\nb\n#else\nc\n#endif\n#else\nd NN N_\n#endif\ne(N)";
        for (defines, expected) in [
            (&[][..], "d NN N_\ne(4u)\n"),
            (&["A"], "a 4u;\nc\ne(4u)\n"),
            (&["A", "B"], "a 4u;\nb\ne(4u)\n"),
            (&["B"], "d NN N_\ne(4u)\n"),
        ] {
            assert_eq!(expand(source, defines, None).as_deref(), Ok(expected), "{defines:?}");
        }
    }

    #[test]
    fn parts_come_once_and_mistakes_are_named() {
        let twice = expand("#import batch\n#import batch\n", &[], None).unwrap();
        assert_eq!(twice.matches("struct Step").count(), 1);
        for wrong in ["#import nothing", "#ifdef A", "#endif", "#else", "#pragma once", "#import weight"] {
            assert!(expand(wrong, &[], None).is_err(), "{wrong}");
        }
        assert_eq!(expand("#import weight", &[], Some("w")).as_deref(), Ok("w\n"));
    }

    /// Every module that a device may be given: (name, source, bindings).
    fn modules() -> Vec<(String, String, &'static [Access])> {
        let mut modules = Vec::new();
        for shader in SHADERS {
            let [a, b, c] = SHAPES.each_ref().map(|shape| shape.defines);
            let variants: &[&[&str]] = match shader.name {
                "ops/scale" => &[&[], &["BY_POSITION"], &["BY_GATE"]],
                "matmul/generic" => &[&[], &["WHOLE"], a, b, c],
                "ops/activate" => &[&["MAIN"]],
                "ops/kv_write" | "plan/rotate" => &[&["KV_F32"], &["KV_F16"], &["KV_Q8_0"], &["KV_Q4_0"]],
                "ops/attention" => &[
                    &["KV_F32"],
                    &["KV_F16", "EIGHT"],
                    &["KV_F16", "AGED"],
                    &["KV_F32", "AGED", "EIGHT"],
                    &["KV_Q8_0"],
                    &["KV_Q4_0", "EIGHT"],
                ],
                _ => &[&[]],
            };
            let weights: Vec<_> = match shader.source.contains("#import weight") {
                true => ALL.iter().map(|packing| (packing.name, Some(packing.source))).collect(),
                false => vec![("", None)],
            };
            for defines in variants {
                for (weight, source) in &weights {
                    let name = format!("{} {defines:?} {weight}", shader.name);
                    let module = expand(shader.source, defines, *source).expect(&name);
                    modules.push((name, module, shader.bindings));
                }
            }
        }
        modules
    }

    /// What each module declares is what its row says: index by index, nothing more and nothing less.
    #[test]
    fn shaders_are_valid_and_bind_what_their_rows_say() {
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
            let valid =
                naga::valid::Validator::new(flags, naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32)
                    .validate(&module);
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
