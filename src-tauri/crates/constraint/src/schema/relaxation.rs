//! What is left out of a schema's grammar: as little as the grammar library demands.

/// What the library refused so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Relaxation {
    /// Alternatives that may overlap.
    pub one_of_as_any_of: bool,
    /// Patterns of property names that may overlap.
    pub(super) drops_patterns: bool,
    /// Keywords beside a reference that leads back to itself.
    pub(super) drops_beside_ref: bool,
    /// Patterns of strings.
    pub(super) drops_string_patterns: bool,
    /// Negations, conditions and dependencies.
    pub(super) drops_conditions: bool,
    /// Everything but the type.
    pub(super) keeps_type_only: bool,
    /// The order of properties, and the spelling of numbers and objects in lists of values.
    pub(super) any_order: bool,
}

impl Relaxation {
    /// For texts that somebody else wrote: properties may come in any order.
    pub fn any_order() -> Self {
        Self { any_order: true, drops_conditions: true, ..Self::default() }
    }

    /// Returns what to leave out next, if the library's reason names something that can be checked instead.
    pub fn after(self, reason: &str) -> Option<Self> {
        let further = if reason.contains("oneOf constraints are not supported") {
            Self { one_of_as_any_of: true, ..self }
        } else if reason.contains("are not disjoint") {
            Self { drops_patterns: true, ..self }
        } else if ["regex parse error", "lookarounds not supported"].iter().any(|it| reason.contains(it)) {
            Self { drops_patterns: true, drops_string_patterns: true, ..self }
        } else if reason.contains("circular references with sibling keys") && !self.drops_beside_ref {
            Self { drops_beside_ref: true, ..self }
        } else if ["stack level exceeded", "schema too large", "circular references"]
            .iter()
            .any(|it| reason.contains(it))
        {
            match self.drops_conditions {
                false => Self { drops_conditions: true, ..self },
                true => Self { keeps_type_only: true, ..self },
            }
        } else {
            return None;
        };
        (further != self).then_some(further)
    }
}
