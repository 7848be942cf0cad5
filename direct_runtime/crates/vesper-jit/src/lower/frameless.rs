//! Lowering of frameless code: inputs and outputs are words, and every unusual case gives up.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, FuncRef, InstBuilder, StackSlot, Type, Value, types};
use vesper_interp::code::Operand;
use vesper_interp::words::{CONSTANT, Given, Shape};
use vesper_ir::Op;

use super::{
    HashMap, How, Kind, Lower, NONE, NotCompiled, Place, SlotBinding, TRUSTED, ValueParts, first_of, offset,
    type_of,
};
use crate::dataflow::accesses;
use crate::frameless::{ABSENT, DONE, GAVE_UP, LAST_NUMBER_AT, NUMBERS_AT, SCRATCH_AT, Site};
use crate::kinds::Bits;
use crate::plan::{function_call, of_function, word_of};

/// The high bit of each byte of a numbered text, which is clear in ASCII.
const HIGH: i64 = 0x0080_8080_8080_8080;

/// The functions that frameless code calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FramelessFunctions {
    pub(crate) call: FuncRef,
    pub(crate) find: FuncRef,
    pub(crate) length: FuncRef,
}

/// The state of lowering that only frameless code has.
#[derive(Debug)]
pub(crate) struct Frameless<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) called: FramelessFunctions,
    /// The address of the result words.
    results: Value,
    pub(crate) sites: Vec<Site>,
    /// The numbers of text inputs that are never overwritten, by place.
    numbers: HashMap<usize, Value>,
    /// The block that gives up, once it is needed.
    gives_up: Option<Block>,
    /// The block that reports a run as too long.
    pub(super) too_long: Option<Block>,
    /// True once the inputs are loaded; slots then no longer refer to input words.
    pub(super) has_begun: bool,
    /// The slots on the stack, once there are any.
    pub(super) room: Option<StackSlot>,
}

impl<'a> Frameless<'a> {
    pub(super) fn new(shape: &'a Shape, called: FramelessFunctions, results: Value) -> Self {
        Self {
            shape,
            called,
            results,
            sites: Vec::new(),
            numbers: HashMap::new(),
            gives_up: None,
            too_long: None,
            has_begun: false,
            room: None,
        }
    }

    /// Returns the position of an input.
    pub(super) fn input(&self, place: usize, kind: Kind) -> Option<SlotBinding> {
        let slot = match (self.shape.inputs.get(place), self.shape.path) {
            (Some(Given::Value { at, .. }), _) => *at,
            (Some(Given::Rows(rows)), _) => rows.at,
            (None, Some(path)) => path.from + place.checked_sub(path.first)?,
            (None, None) => return None,
        };
        Some(SlotBinding { place, kind, slot })
    }
}

impl Lower<'_, '_> {
    /// Returns the block that gives up, or `None` with a frame.
    pub(super) fn give_up_block(&mut self) -> Option<Block> {
        let words = self.words.as_mut()?;
        if let Some(block) = words.gives_up {
            return Some(block);
        }
        let block = self.builder.create_block();
        self.builder.set_cold_block(block);
        words.gives_up = Some(block);
        Some(block)
    }

    /// Gives up if a loaded input has another scale than the known one.
    pub(super) fn guard_scale(&mut self, kept: SlotBinding, next: usize) {
        let known = self.scales.get(&next).and_then(|known| known.get(kept.place));
        if let (Kind::Decimal, Some(scale)) = (kept.kind, known) {
            let given = self.load_part(kept, 1);
            let is_other = self
                .builder
                .ins()
                .icmp_imm_s(IntCC::NotEqual, given, i64::from(scale));
            self.guard(is_other);
        }
    }

    /// Loads the number of a text input, which is zero if it has none.
    pub(super) fn take_number(&mut self, kept: SlotBinding) -> Result<(), NotCompiled> {
        let mut all = self.code.instructions.iter();
        if kept.kind != Kind::Text || all.any(|one| accesses(self.code, one).writes.contains(&kept.place)) {
            return Ok(());
        }
        let text = self.only(kept.place, Kind::Text)?;
        let flags = TRUSTED.with_readonly();
        let ins = self.builder.ins();
        let last = ins.load(types::I64, flags, self.context, LAST_NUMBER_AT);
        let first = self
            .builder
            .ins()
            .load(types::I64, flags, self.context, NUMBERS_AT);
        // Any index is valid: it is clamped to the last number, which is zero.
        let place = self.builder.ins().umin(text, last);
        let at = self.builder.ins().ishl_imm_s(place, 3);
        let at = self.builder.ins().iadd(first, at);
        let number = self.builder.ins().load(types::I64, flags, at, 0);
        if let Some(words) = &mut self.words {
            words.numbers.insert(kept.place, number);
        }
        Ok(())
    }

    /// Returns the number of a text operand, if it may have one.
    fn number(&self, text: Operand) -> Option<Value> {
        let place = text.as_register()?.0 as usize;
        self.words.as_ref()?.numbers.get(&place).copied()
    }

    /// Computes `quick` if a condition holds, and otherwise the rare `slow`.
    fn either(
        &mut self,
        ty: Type,
        condition: Value,
        quick: Value,
        slow: impl FnOnce(&mut Self) -> Result<Value, NotCompiled>,
    ) -> Result<Value, NotCompiled> {
        let (seldom, join) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(seldom);
        let either = self.builder.append_block_param(join, ty);
        let quick = [BlockArg::Value(quick)];
        self.builder.ins().brif(condition, join, &quick, seldom, &NONE);
        self.builder.switch_to_block(seldom);
        let slow = slow(self)?;
        self.builder.ins().jump(join, &[BlockArg::Value(slow)]);
        self.builder.switch_to_block(join);
        Ok(either)
    }

    /// Lowers the block that gives up, if it is needed.
    pub(super) fn write_give_up(&mut self) {
        if let Some(block) = self.words.as_mut().and_then(|words| words.gives_up.take()) {
            self.builder.switch_to_block(block);
            let answer = self.builder.ins().iconst(types::I64, GAVE_UP);
            self.builder.ins().return_(&[answer]);
        }
    }

    /// Returns true if all operands are in machine registers; otherwise frameless code gives up here.
    pub(super) fn has_all(&mut self, uses: &[(usize, Kind)]) -> bool {
        let stands = |(place, kind): &(usize, Kind)| self.state.native(*place) == Some(*kind);
        if uses.iter().all(stands) {
            return true;
        }
        if let Some(block) = self.give_up_block() {
            self.builder.ins().jump(block, &NONE);
        }
        false
    }

    /// Writes the outputs of a complete run.
    pub(super) fn give_outputs(&mut self) -> Result<(), NotCompiled> {
        let Some(words) = &self.words else {
            return Err(NotCompiled::new("outputs are written where there is a frame"));
        };
        let (results, outputs, path) = (words.results, words.shape.outputs.clone(), words.shape.path);
        let mut all = Vec::with_capacity(outputs.len());
        if let Some(path) = path {
            for (word, at) in (path.first..path.first + path.words).zip(path.to..) {
                if !self.has_all(&[(word, Kind::Integer)]) {
                    return Ok(());
                }
                all.push((Kind::Integer, at, self.read_value(word, Kind::Integer)));
            }
        }
        for (operand, (form, at)) in self.code.returns.clone().into_iter().zip(outputs) {
            let kind = Kind::of_form(form);
            let register = operand.as_register().map(|register| (register.0 as usize, kind));
            if !self.has_all(register.as_slice()) {
                return Ok(());
            }
            // A constant may be a large decimal.
            let Ok(held) = self.operand(operand, kind) else {
                if let Some(block) = self.give_up_block() {
                    self.builder.ins().jump(block, &NONE);
                }
                return Ok(());
            };
            all.push((kind, at, held));
        }
        for (kind, at, held) in all {
            for (part, value) in held.into_iter().enumerate() {
                let value = self.whole(kind, value);
                let place = offset(at + part);
                self.builder.ins().store(TRUSTED, value, results, place);
            }
        }
        let answer = self.builder.ins().iconst(types::I64, DONE);
        self.builder.ins().return_(&[answer]);
        Ok(())
    }

    /// Extends a part of a value to a whole word.
    fn whole(&mut self, kind: Kind, value: Value) -> Value {
        match kind {
            Kind::Boolean => self.builder.ins().uextend(types::I64, value),
            _ => value,
        }
    }

    /// Returns a constant text as a word.
    pub(super) fn text(&mut self, operand: Operand) -> Option<Value> {
        let place = operand.as_constant()?;
        let word = CONSTANT | u64::from(place);
        Some(self.builder.ins().iconst(types::I64, word.cast_signed()))
    }

    /// Starts a loop over an input array.
    pub(super) fn first_row(&mut self, over: Operand, how: &How) -> Result<(), NotCompiled> {
        let held = self.operand(over, Kind::Rows)?;
        let ([first, count], How::Inline { gives, .. }) = (held.as_slice(), how) else {
            return Err(NotCompiled::new("an array has other parts than two"));
        };
        let [(items, Kind::Items)] = gives.as_slice() else {
            return Err(NotCompiled::new("a loop begins with something else"));
        };
        let (first, count) = (*first, *count);
        let next = self.builder.ins().iconst(types::I64, 0);
        self.write_value(*items, Kind::Items, &[first, next, count]);
        Ok(())
    }

    /// Notes the class of a loop's rounds: none, one or many.
    pub(super) fn note_rounds(&mut self, rounds: Value, point: u32) -> Result<(), NotCompiled> {
        let (word, bit) = word_of(self.code, point)
            .ok_or_else(|| NotCompiled::new("the points of a loop are in two words"))?;
        let many = self.builder.ins().iconst(types::I64, 2);
        let class = self.builder.ins().umin(rounds, many);
        let first = self.builder.ins().iconst(types::I64, 1_i64 << bit);
        let noted = self.builder.ins().ishl(first, class);
        let path = self.only(word, Kind::Integer)?;
        let path = self.builder.ins().bor(path, noted);
        self.write_value(word, Kind::Integer, &[path]);
        Ok(())
    }

    /// Returns the number of items taken so far.
    pub(super) fn items_taken(&mut self, items: usize, began: usize) -> Result<Value, NotCompiled> {
        let began = self.only(began, Kind::Integer)?;
        let kind = self.state.native(items).unwrap_or(Kind::Items);
        match self.read_value(items, kind).as_slice() {
            [_, _, left] => Ok(self.builder.ins().isub(began, *left)),
            _ => Err(NotCompiled::new("a loop has other parts than three")),
        }
    }

    /// Emits an operation that a function computes.
    pub(super) fn by_function(
        &mut self,
        op: Op,
        args: &[Operand],
    ) -> Result<(Kind, ValueParts), NotCompiled> {
        let missing = || NotCompiled::new("no code for an operation");
        let asked = function_call(self.code, op, args).ok_or_else(missing)?;
        if let (Site::Has(_, Some(others)), [(text, Kind::Text)]) = (&asked.site, asked.given.as_slice())
            && let Some(number) = self.number(*text)
        {
            let (text, holds) = (*text, self.is_one_of(number, others));
            let is_some = self.builder.ins().icmp_imm_s(IntCC::NotEqual, number, 0);
            let holds = self.either(types::I8, is_some, holds, |lower| {
                first_of(&lower.emit_lookup(asked.gives, text, asked.site)?.1)
            })?;
            return Ok((Kind::Boolean, vec![holds]));
        }
        if let (Site::Has(..) | Site::At { .. }, [(text, Kind::Text)]) = (&asked.site, asked.given.as_slice())
        {
            return self.emit_lookup(asked.gives, *text, asked.site);
        }
        if let (Site::Length, [(text, Kind::Text)]) = (&asked.site, asked.given.as_slice()) {
            return self.text_length(*text);
        }
        let mut at = SCRATCH_AT;
        for (operand, kind) in &asked.given {
            for value in self.operand(*operand, *kind)? {
                let value = self.whole(*kind, value);
                let place = i32::try_from(at).unwrap_or(i32::MAX);
                self.builder.ins().store(TRUSTED, value, self.context, place);
                at += 8;
            }
        }
        let words = self.words.as_mut().ok_or_else(missing)?;
        let number = i64::try_from(words.sites.len()).unwrap_or(i64::MAX);
        words.sites.push(asked.site);
        let function = words.called.call;
        let site = self.builder.ins().iconst(types::I32, number);
        let call = self.builder.ins().call(function, &[self.context, site]);
        let answer = self
            .builder
            .inst_results(call)
            .first()
            .copied()
            .ok_or_else(missing)?;
        self.guard(answer);
        let kind = asked.gives;
        let held = (0..kind.width()).map(|part| {
            let place = i32::try_from(SCRATCH_AT).unwrap_or(0) + offset(part);
            self.builder
                .ins()
                .load(type_of(kind), TRUSTED, self.context, place)
        });
        let held: ValueParts = held.collect();
        // The known scale replaces the computed one.
        if let (Some(scale), [_, given]) = (self.function_scale(op, args), held.as_slice()) {
            let is_other = self
                .builder
                .ins()
                .icmp_imm_s(IntCC::NotEqual, *given, i64::from(scale));
            self.guard(is_other);
        }
        Ok((kind, held))
    }

    /// Returns the known scale of a function's result.
    fn function_scale(&self, op: Op, args: &[Operand]) -> Option<u16> {
        if self.scales.is_empty() {
            return None;
        }
        of_function(self.code, op, args)
    }

    /// Emits the characters of a text, which are known for a numbered ASCII text.
    fn text_length(&mut self, text: Operand) -> Result<(Kind, ValueParts), NotCompiled> {
        let Some(number) = self.number(text) else {
            return Ok((Kind::Integer, vec![self.count_characters(text)?]));
        };
        let high = self.builder.ins().band_imm_s(number, HIGH);
        let is_ascii = self.builder.ins().icmp_imm_s(IntCC::Equal, high, 0);
        let is_some = self.builder.ins().icmp_imm_s(IntCC::NotEqual, number, 0);
        let is_known = self.builder.ins().band(is_some, is_ascii);
        let length = self.builder.ins().ushr_imm_s(number, 56);
        let length = self.either(types::I64, is_known, length, |lower| lower.count_characters(text))?;
        Ok((Kind::Integer, vec![length]))
    }

    /// Emits a call that counts the characters of a text.
    fn count_characters(&mut self, text: Operand) -> Result<Value, NotCompiled> {
        let missing = || NotCompiled::new("no code for the length of a text");
        let text = self.one(text, Kind::Text)?;
        let function = self.words.as_ref().ok_or_else(missing)?.called.length;
        let call = self.builder.ins().call(function, &[self.context, text]);
        let length = self
            .builder
            .inst_results(call)
            .first()
            .copied()
            .ok_or_else(missing)?;
        let is_lost = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, length, 0);
        self.guard(is_lost);
        Ok(length)
    }

    /// Emits a comparison of a text number with these numbers.
    fn is_one_of(&mut self, number: Value, others: &[u64]) -> Value {
        let mut holds = None;
        for other in others {
            let other = self.builder.ins().iconst(types::I64, other.cast_signed());
            let is_it = self.builder.ins().icmp(IntCC::Equal, number, other);
            holds = Some(match holds {
                Some(holds) => self.builder.ins().bor(holds, is_it),
                None => is_it,
            });
        }
        holds.unwrap_or_else(|| self.builder.ins().iconst(types::I8, 0))
    }

    /// Emits a lookup of a text in a constant.
    fn emit_lookup(
        &mut self,
        gives: Kind,
        text: Operand,
        site: Site,
    ) -> Result<(Kind, ValueParts), NotCompiled> {
        let missing = || NotCompiled::new("no code for a search");
        let values = match &site {
            Site::At { values, .. } => Some(i64::try_from(values.as_ptr().addr()).map_err(|_| missing())?),
            _ => None,
        };
        let text = self.one(text, Kind::Text)?;
        let words = self.words.as_mut().ok_or_else(missing)?;
        let number = i64::try_from(words.sites.len()).map_err(|_| missing())?;
        // Moving the site keeps its heap data in place: the code below contains the address of the values.
        words.sites.push(site);
        let function = words.called.find;
        let site = self.builder.ins().iconst(types::I32, number);
        let call = self.builder.ins().call(function, &[self.context, site, text]);
        let place = self
            .builder
            .inst_results(call)
            .first()
            .copied()
            .ok_or_else(missing)?;
        let Some(values) = values else {
            let is_lost = self
                .builder
                .ins()
                .icmp_imm_s(IntCC::SignedLessThan, place, ABSENT);
            self.guard(is_lost);
            let holds = self
                .builder
                .ins()
                .icmp_imm_s(IntCC::SignedGreaterThan, place, ABSENT);
            return Ok((Kind::Boolean, vec![holds]));
        };
        let is_absent = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, place, 0);
        self.guard(is_absent);
        let first = self.builder.ins().iconst(types::I64, values);
        let stride = i64::try_from(size_of::<Bits>()).map_err(|_| missing())?;
        let at = self.builder.ins().imul_imm_s(place, stride);
        let at = self.builder.ins().iadd(first, at);
        let flags = TRUSTED.with_readonly();
        let held = (0..gives.width()).map(|part| {
            let ins = self.builder.ins();
            ins.load(type_of(gives), flags, at, offset(part))
        });
        Ok((gives, held.collect()))
    }

    /// Returns true if a place of frameless code has no value in machine registers.
    pub(super) fn is_nowhere(&self, place: usize) -> bool {
        self.words.is_some() && self.state.get(place) == Place::Frame
    }
}
