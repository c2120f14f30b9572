//! Variables in force. A scope is shared with the macros defined in it, which see later changes.

use std::cell::RefCell;
use std::rc::Rc;

use super::Value;
use crate::ast::Symbol;
use crate::failure::Result;
use crate::meter::{Charge, Meter};

/// Variables that are compared in one unit of work.
const VALUES_PER_UNIT: u64 = 16;

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

    /// Errors: looking for it took too long.
    pub fn get(&self, symbol: Symbol) -> Result<Option<Value>> {
        let mut scope = self;
        loop {
            scope.count_search()?;
            let found =
                scope.values.borrow().iter().find(|(known, _)| *known == symbol).map(|(_, v)| v.clone());
            match (found, &scope.parent) {
                (Some(value), _) => return Ok(Some(value)),
                (None, Some(parent)) => scope = parent,
                (None, None) => return Ok(None),
            }
        }
    }

    /// Counts what a search through all variables costs.
    fn count_search(&self) -> Result<()> {
        self.charge.borrow().meter().work(self.values.borrow().len() as u64 / VALUES_PER_UNIT)
    }

    pub fn set(&self, symbol: Symbol, value: Value) -> Result<()> {
        self.count_search()?;
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
