//! Which instructions this processor has, decided once. A level names a set of kernels that belong together; results
//! are bit-identical within a level, and close to each other between levels.

use std::fmt;

use crate::error::KernelError;

/// Levels in rising order. x86-64 has the AVX ones, 64-bit ARM the NEON ones, every machine `Portable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsaLevel {
    /// plain Rust: right everywhere
    Portable,
    /// AVX2, FMA, F16C
    Avx2,
    /// AVX2 with the dot product of bytes (AVX-VNNI): what desktop processors without AVX-512 have; other operations are
    /// those of `Avx2`
    AvxVnni,
    /// AVX-512 F, BW, VL, DQ, VNNI on top of AVX2
    Avx512,
    /// what every 64-bit ARM has; operations other than products and attention are compiled for it at `Portable` already
    Neon,
    /// NEON with the dot product of bytes
    NeonDot,
    /// `NeonDot` with the matrix product of bytes (I8MM)
    NeonI8mm,
}

/// Forces a level: `portable`, `avx2`, `avx_vnni`, `avx512`, `neon`, `neon_dot` or `neon_i8mm`.
pub const ISA_VARIABLE: &str = "INGLENOOK_ISA";

impl IsaLevel {
    pub const ALL: [Self; 7] =
        [Self::Portable, Self::Avx2, Self::AvxVnni, Self::Avx512, Self::Neon, Self::NeonDot, Self::NeonI8mm];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx_vnni",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
            Self::NeonDot => "neon_dot",
            Self::NeonI8mm => "neon_i8mm",
        }
    }

    /// The highest level this processor has.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|l| l.is_present()).unwrap_or(Self::Portable)
    }

    /// Every level this processor has: what twin tests run over.
    pub fn present() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|l| l.is_present())
    }

    /// The detected level, or the one that `forced` names. Errors: an unknown or absent level.
    pub fn select(forced: Option<&str>) -> Result<Self, KernelError> {
        let found = Self::detect();
        let Some(wanted) = forced.filter(|w| !w.is_empty()) else {
            return Ok(found);
        };
        let level = Self::ALL.into_iter().find(|l| l.name() == wanted && l.is_present());
        level.ok_or_else(|| KernelError::Isa { wanted: wanted.to_owned(), found: found.name() })
    }

    /// Whether the environment variable `INGLENOOK_ISA` chooses.
    pub fn is_forced() -> bool {
        std::env::var(ISA_VARIABLE).is_ok_and(|level| !level.is_empty())
    }

    /// `select` by the environment variable `INGLENOOK_ISA`.
    pub fn from_env() -> Result<Self, KernelError> {
        Self::select(std::env::var(ISA_VARIABLE).ok().as_deref())
    }

    #[cfg(target_arch = "x86_64")]
    pub fn is_present(self) -> bool {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        match self {
            Self::Portable => true,
            Self::Avx2 => avx2,
            Self::AvxVnni => avx2 && is_x86_feature_detected!("avxvnni"),
            Self::Avx512 => {
                avx2 && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vnni")
            }
            Self::Neon | Self::NeonDot | Self::NeonI8mm => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    pub fn is_present(self) -> bool {
        let dot = std::arch::is_aarch64_feature_detected!("dotprod");
        match self {
            Self::Portable | Self::Neon => true,
            Self::NeonDot => dot,
            Self::NeonI8mm => dot && std::arch::is_aarch64_feature_detected!("i8mm"),
            Self::Avx2 | Self::AvxVnni | Self::Avx512 => false,
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_present(self) -> bool {
        self == Self::Portable
    }
}

impl fmt::Display for IsaLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One operation compiled for each level.
#[derive(Clone, Copy)]
pub struct Levels<F> {
    pub portable: F,
    pub avx2: F,
    pub avx512: F,
    pub neon: F,
}

impl<F: Copy> Levels<F> {
    /// The function for a level. The caller vouches that the level `is_present`; `Isa` does so for everything
    /// outside tests.
    pub fn at(&self, level: IsaLevel) -> F {
        match level {
            IsaLevel::Portable => self.portable,
            IsaLevel::Avx2 | IsaLevel::AvxVnni => self.avx2,
            IsaLevel::Avx512 => self.avx512,
            IsaLevel::Neon | IsaLevel::NeonDot | IsaLevel::NeonI8mm => self.neon,
        }
    }
}

/// How a level multiplies and adds: fused where there is an instruction for it.
pub trait Mac {
    /// Independent rows a small matrix product keeps in registers.
    const PANEL_ROWS: usize;
    fn mac(a: f32, b: f32, c: f32) -> f32;
}

/// What every processor of its kind can do fast: two roundings on x86-64, one on 64-bit ARM.
pub struct BaselineMac;
/// One rounding, 16 vector registers of 8 floats.
pub struct FmaMac8;
/// One rounding, 32 vector registers of 16 floats.
pub struct FmaMac16;

impl Mac for BaselineMac {
    const PANEL_ROWS: usize = if cfg!(target_arch = "aarch64") { 4 } else { 1 };
    #[inline(always)]
    fn mac(a: f32, b: f32, c: f32) -> f32 {
        if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
    }
}

impl Mac for FmaMac8 {
    const PANEL_ROWS: usize = 2;
    #[inline(always)]
    fn mac(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

impl Mac for FmaMac16 {
    const PANEL_ROWS: usize = 4;
    #[inline(always)]
    fn mac(a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

/// Compiles one `#[inline(always)] fn body<M: Mac>(..)` at every level: the arithmetic is written once, the compiler
/// vectorises it for each. Declares `static NAME: Levels<fn(..)>`.
macro_rules! levels {
    ($(#[$doc:meta])* $vis:vis $name:ident = $body:ident ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $(#[$doc])*
        #[allow(unsafe_code)]
        $vis static $name: $crate::cpu::isa::Levels<fn($($ty),*) $(-> $ret)?> = {
            fn portable($($arg: $ty),*) $(-> $ret)? {
                $body::<$crate::cpu::isa::BaselineMac>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            fn avx2($($arg: $ty),*) $(-> $ret)? {
                #[target_feature(enable = "avx2,fma,f16c")]
                fn inner($($arg: $ty),*) $(-> $ret)? {
                    $body::<$crate::cpu::isa::FmaMac8>($($arg),*)
                }
                // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                unsafe { inner($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
                fn inner($($arg: $ty),*) $(-> $ret)? {
                    $body::<$crate::cpu::isa::FmaMac16>($($arg),*)
                }
                // SAFETY: `Levels::at` is asked only for levels that `IsaLevel::is_present` confirmed.
                unsafe { inner($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            { $crate::cpu::isa::Levels { portable, avx2, avx512, neon: portable } }
            #[cfg(not(target_arch = "x86_64"))]
            { $crate::cpu::isa::Levels { portable, avx2: portable, avx512: portable, neon: portable } }
        };
    };
}
pub(crate) use levels;

/// What the processor calls itself, padded with spaces or zeros.
#[cfg(target_arch = "x86_64")]
pub fn brand() -> [u8; 48] {
    use std::arch::x86_64::__cpuid;
    let mut out = [0; 48];
    if __cpuid(0x8000_0000).eax < 0x8000_0004 {
        return out;
    }
    for (i, bytes) in out.chunks_exact_mut(16).enumerate() {
        let leaf = __cpuid(0x8000_0002 + i as u32);
        for (bytes, register) in bytes.chunks_exact_mut(4).zip([leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]) {
            bytes.copy_from_slice(&register.to_le_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else whatever is tested at a level would pass where an emulator lacks its instructions.
    #[test]
    fn the_level_that_the_environment_asks_for_is_here() {
        let level = IsaLevel::from_env().expect("a level of this processor");
        assert!(level.is_present());
    }
}
