//! Instruction-set levels: which instructions this processor has, detected once.
//! Guarantees: results are bit-identical within a level, and close to each other between levels.

use std::fmt;

use crate::error::KernelError;

/// Levels in rising order. x86-64 has the AVX ones, 64-bit ARM the NEON ones, every machine `Portable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsaLevel {
    /// Plain Rust; correct everywhere.
    Portable,
    /// AVX2, FMA, F16C.
    Avx2,
    /// `Avx2` with the byte dot product AVX-VNNI, as in desktop processors without AVX-512. Other operations
    /// are those of `Avx2`.
    AvxVnni,
    /// AVX-512 F, BW, VL, DQ, VNNI on top of AVX2.
    Avx512,
    /// What every 64-bit ARM processor has. Only matrix products and attention differ from `Portable`, which
    /// is compiled for NEON too.
    Neon,
    /// NEON with the byte dot product `sdot`.
    NeonDot,
    /// `NeonDot` with the byte matrix product `smmla` (I8MM).
    NeonI8mm,
}

/// Environment variable that forces a level: `portable`, `avx2`, `avx_vnni`, `avx512`, `neon`, `neon_dot` or
/// `neon_i8mm`.
pub const ISA_VARIABLE: &str = "INGLENOOK_ISA";

impl IsaLevel {
    /// All levels in rising order.
    pub const ALL: [Self; 7] =
        [Self::Portable, Self::Avx2, Self::AvxVnni, Self::Avx512, Self::Neon, Self::NeonDot, Self::NeonI8mm];

    /// Returns the name used in `INGLENOOK_ISA`.
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

    /// Returns the highest level this processor has.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|l| l.is_present()).unwrap_or(Self::Portable)
    }

    /// Iterates over the levels this processor has; parity tests run at each.
    pub fn present() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|l| l.is_present())
    }

    /// Returns the detected level, or the one named by `forced`. Errors: an unknown or absent level.
    pub fn select(forced: Option<&str>) -> Result<Self, KernelError> {
        let found = Self::detect();
        let Some(wanted) = forced.filter(|w| !w.is_empty()) else {
            return Ok(found);
        };
        let level = Self::ALL.into_iter().find(|l| l.name() == wanted && l.is_present());
        level.ok_or_else(|| KernelError::Isa { wanted: wanted.to_owned(), found: found.name() })
    }

    /// Returns whether the environment variable `INGLENOOK_ISA` forces a level.
    pub fn is_forced() -> bool {
        std::env::var(ISA_VARIABLE).is_ok_and(|level| !level.is_empty())
    }

    /// Calls `select` with the environment variable `INGLENOOK_ISA`.
    pub fn from_env() -> Result<Self, KernelError> {
        Self::select(std::env::var(ISA_VARIABLE).ok().as_deref())
    }

    /// Returns whether this processor has the level.
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

    /// Returns whether this processor has the level.
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

    /// Returns whether this processor has the level.
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
    /// For any processor.
    pub portable: F,
    /// For `Avx2` and `AvxVnni`.
    pub avx2: F,
    /// For `Avx512`.
    pub avx512: F,
    /// For all NEON levels.
    pub neon: F,
}

impl<F: Copy> Levels<F> {
    /// Returns the function for a level, which must be present (`IsaLevel::is_present`). `Kernels` ensures
    /// this outside tests.
    pub fn at(&self, level: IsaLevel) -> F {
        match level {
            IsaLevel::Portable => self.portable,
            IsaLevel::Avx2 | IsaLevel::AvxVnni => self.avx2,
            IsaLevel::Avx512 => self.avx512,
            IsaLevel::Neon | IsaLevel::NeonDot | IsaLevel::NeonI8mm => self.neon,
        }
    }
}

/// Multiply-add of a level: fused if there is an instruction for it.
pub trait Mac {
    /// Independent rows that a small matrix product keeps in registers.
    const PANEL_ROWS: usize;
    /// Returns a · b + c.
    fn mac(a: f32, b: f32, c: f32) -> f32;
}

/// The fast choice on any processor of the architecture: two roundings on x86-64, one on 64-bit ARM.
pub struct BaselineMac;
/// Fused multiply-add with 16 vector registers of 8 floats.
pub struct FmaMac8;
/// Fused multiply-add with 32 vector registers of 16 floats.
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

/// Compiles one `#[inline(always)] fn body<M: Mac>(..)` for every level. The arithmetic is written once, and
/// the compiler vectorizes it for each. Declares `static NAME: Levels<fn(..)>`.
macro_rules! levels {
    ($(#[$doc:meta])* $vis:vis $name:ident = $body:ident ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?) => {
        $(#[$doc])*
        #[doc = concat!("`", stringify!($body), "`, compiled for every level.")]
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
                // SAFETY: `Levels::at` is called only with levels that `IsaLevel::is_present` confirmed.
                unsafe { inner($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            fn avx512($($arg: $ty),*) $(-> $ret)? {
                #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")]
                fn inner($($arg: $ty),*) $(-> $ret)? {
                    $body::<$crate::cpu::isa::FmaMac16>($($arg),*)
                }
                // SAFETY: `Levels::at` is called only with levels that `IsaLevel::is_present` confirmed.
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

/// Returns the processor's brand string, padded with spaces or zeros.
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

    /// Otherwise tests at a level would pass under an emulator that lacks its instructions.
    #[test]
    fn the_forced_level_is_present() {
        let level = IsaLevel::from_env().expect("a level of this processor");
        assert!(level.is_present());
    }
}
