//! Variables in force. A scope is shared with the macros defined in it, which see later changes.

use std::cell::RefCell;
use std::rc::Rc;

use super::Value;
use crate::ast::Symbol;
use crate::failure::Result;
use crate::meter::{Charge, Meter};

pub struct Scope {
    values: RefCell<Vec<(Symbol, Value)>>,
    parent: Option<Rc<Scope>>,
    charge: RefCell<Charge>,
}

impl Scope {
    pub fn new(meter: &Rc<Meter>, parent: Option<Rc<Scope>>) -> Result<Rc<Self>> {
        let charge = RefCell::new(meter.charge(size_of::<Self>())?);
        Ok(Rc::new(Self { values: RefCell::default(), parent, charge }))
    }

    pub fn get(&self, symbol: Symbol) -> Option<Value> {
        let mut scope = self;
        loop {
            let found =
                scope.values.borrow().iter().find(|(known, _)| *known == symbol).map(|(_, v)| v.clone());
            match (found, &scope.parent) {
                (Some(value), _) => return Some(value),
                (None, Some(parent)) => scope = parent,
                (None, None) => return None,
            }
        }
    }

    pub fn set(&self, symbol: Symbol, value: Value) -> Result<()> {
        let mut values = self.values.borrow_mut();
        if let Some((_, slot)) = values.iter_mut().find(|(known, _)| *known == symbol) {
            *slot = value;
            return Ok(());
        }
        self.charge.borrow_mut().grow(size_of::<(Symbol, Value)>() * 2)?;
        values.push((symbol, value));
        Ok(())
    }

    /// Forgets everything, so that nothing holds on to itself.
    pub fn clear(&self) {
        let values = std::mem::take(&mut *self.values.borrow_mut());
        drop(values);
    }
}
