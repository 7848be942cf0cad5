//! Index of the rows of a table.
//!
//! Every column is an axis of positions: 0 for null, then in turn the gap before each value that some cell mentions and
//! that value itself, and last the gap after all. A cell is a list of spans of positions. Rows whose cells are single
//! positions in the same columns form a group: a hash map from these positions to a bucket. A large bucket has a segment
//! tree over one of the other columns.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use crate::value::Value;

use super::{Bound, Cell, Test};

/// Number of rows up to which a bucket is scanned.
const MAX_SCAN: usize = 8;

/// Span of positions: from the first to before the second.
type Span = (u32, u32);

/// Rows by their positions in the columns of a group.
type RowsByPlace = HashMap<Box<[u32]>, Vec<u32>>;

#[derive(Debug)]
pub(super) struct Index {
    axes: Vec<Axis>,
    /// Spans of each cell, row by row; `None` for a cell that everything matches.
    spans: Vec<Option<Box<[Span]>>>,
    groups: Vec<Group>,
}

/// Values that the cells of a column mention, in order.
#[derive(Debug)]
struct Axis(Vec<Value>);

#[derive(Debug)]
struct Group {
    columns: Vec<usize>,
    buckets: HashMap<Box<[u32]>, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// Rows in their order; empty where there is a tree.
    rows: Vec<u32>,
    tree: Option<Tree>,
}

/// Segment tree over the spans of one column.
#[derive(Debug)]
struct Tree {
    column: usize,
    /// Ends of all spans, in order.
    ends: Vec<u32>,
    /// Rows of each node, in their order. The leaf of segment `k` is the node `ends.len() + k`, its parent half of that.
    nodes: Vec<Vec<u32>>,
}

impl Index {
    pub(super) fn new(columns: usize, cells: &[Vec<Cell>]) -> Self {
        let axes: Vec<Axis> = (0..columns).map(|column| Axis::new(cells, column)).collect();
        let spans: Vec<Option<Box<[Span]>>> = (cells.iter())
            .flat_map(|row| row.iter().zip(&axes).map(|(cell, axis)| axis.spans(cell)))
            .collect();
        let mut index = Self {
            axes,
            spans,
            groups: Vec::new(),
        };
        index.groups = index.grouped(cells.len());
        index
    }

    /// Returns the first row that matches.
    pub(super) fn first(&self, keys: &[Value]) -> Option<u32> {
        let positions = self.positions(keys);
        let mut best = u32::MAX;
        self.each_list(&positions, |rows| {
            for row in rows.iter().copied().take_while(|row| *row < best) {
                if self.matches(row, &positions) {
                    best = row;
                    break;
                }
            }
        });
        (best < u32::MAX).then_some(best)
    }

    /// Returns all rows that match, in their order.
    pub(super) fn all(&self, keys: &[Value]) -> Vec<u32> {
        let positions = self.positions(keys);
        let mut found = Vec::new();
        self.each_list(&positions, |rows| {
            found.extend(rows.iter().filter(|row| self.matches(**row, &positions)));
        });
        found.sort_unstable();
        found
    }

    fn positions(&self, keys: &[Value]) -> Vec<u32> {
        self.axes
            .iter()
            .zip(keys)
            .map(|(axis, key)| axis.position(key))
            .collect()
    }

    /// Calls the function with every list of rows that may match.
    fn each_list(&self, positions: &[u32], mut visit: impl FnMut(&[u32])) {
        let mut wanted = Vec::with_capacity(positions.len());
        for group in &self.groups {
            wanted.clear();
            wanted.extend(group.columns.iter().filter_map(|column| positions.get(*column)));
            let Some(bucket) = group.buckets.get(wanted.as_slice()) else {
                continue;
            };
            visit(&bucket.rows);
            if let Some(tree) = &bucket.tree {
                tree.each_list(positions, &mut visit);
            }
        }
    }

    fn cells(&self, row: u32) -> &[Option<Box<[Span]>>] {
        let start = usize::try_from(row)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.axes.len());
        self.spans.get(start..start + self.axes.len()).unwrap_or_default()
    }

    fn matches(&self, row: u32, positions: &[u32]) -> bool {
        (self.cells(row).iter().zip(positions)).all(|(spans, position)| match spans {
            Some(spans) => spans
                .iter()
                .any(|(start, end)| start <= position && position < end),
            None => true,
        })
    }

    fn grouped(&self, rows: usize) -> Vec<Group> {
        let mut groups: BTreeMap<Vec<usize>, RowsByPlace> = BTreeMap::new();
        for row in (0..rows).filter_map(|row| u32::try_from(row).ok()) {
            let cells = self.cells(row);
            if cells
                .iter()
                .any(|spans| spans.as_ref().is_some_and(|spans| spans.is_empty()))
            {
                continue;
            }
            let points = cells
                .iter()
                .enumerate()
                .filter_map(|(column, spans)| match spans.as_deref() {
                    Some([(start, end)]) if end - start == 1 => Some((column, *start)),
                    _ => None,
                });
            let (columns, wanted): (Vec<usize>, Vec<u32>) = points.unzip();
            let buckets = groups.entry(columns).or_default();
            buckets.entry(wanted.into()).or_default().push(row);
        }
        let grouped = groups.into_iter().map(|(columns, buckets)| {
            let buckets = buckets
                .into_iter()
                .map(|(wanted, rows)| (wanted, self.bucket(rows, &columns)));
            Group {
                buckets: buckets.collect(),
                columns,
            }
        });
        grouped.collect()
    }

    fn bucket(&self, rows: Vec<u32>, fixed: &[usize]) -> Bucket {
        let narrowing = |column: &usize| {
            let narrows = |row: &&u32| self.cells(**row).get(*column).is_some_and(Option::is_some);
            rows.iter().filter(narrows).count()
        };
        let columns = (0..self.axes.len()).filter(|column| !fixed.contains(column));
        let best = columns
            .max_by_key(narrowing)
            .filter(|column| narrowing(column) > 0);
        match best {
            Some(column) if rows.len() > MAX_SCAN => Bucket {
                tree: Some(Tree::new(column, &rows, |row| {
                    self.cells(row).get(column).and_then(Option::as_deref)
                })),
                rows: Vec::new(),
            },
            _ => Bucket { rows, tree: None },
        }
    }
}

impl Axis {
    fn new(cells: &[Vec<Cell>], column: usize) -> Self {
        let cells = cells.iter().filter_map(|row| row.get(column));
        let tests = cells.flat_map(|cell| match cell {
            Cell::Any => [].iter(),
            Cell::In(tests) => tests.iter(),
        });
        let mut values: Vec<Value> = Vec::new();
        for test in tests {
            match test {
                Test::Is(Value::Null) => {}
                Test::Is(value) => values.push(value.clone()),
                Test::Between(from, to) => {
                    values.extend(from.iter().chain(to).map(|bound| bound.value.clone()));
                }
            }
        }
        values.sort_by(order);
        values.dedup_by(|left, right| order(left, right) == Ordering::Equal);
        Self(values)
    }

    fn position(&self, key: &Value) -> u32 {
        if matches!(key, Value::Null) {
            return 0;
        }
        match self.0.binary_search_by(|value| order(value, key)) {
            Ok(place) => exact(place),
            Err(place) => exact(place) - 1,
        }
    }

    /// Returns the spans of a cell, in order and apart from each other.
    fn spans(&self, cell: &Cell) -> Option<Box<[Span]>> {
        let Cell::In(tests) = cell else {
            return None;
        };
        let mut spans: Vec<Span> = tests.iter().map(|test| self.span(test)).collect();
        spans.retain(|(start, end)| start < end);
        spans.sort_unstable();
        let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
        for (start, end) in spans {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        Some(joined.into())
    }

    fn span(&self, test: &Test) -> Span {
        let open = |bound: &Bound| u32::from(bound.is_open);
        match test {
            Test::Is(value) => {
                let position = self.position(value);
                (position, position + 1)
            }
            Test::Between(from, to) => (
                from.as_ref()
                    .map_or(1, |from| self.position(&from.value) + open(from)),
                to.as_ref()
                    .map_or(self.end(), |to| self.position(&to.value) + 1 - open(to)),
            ),
        }
    }

    /// Returns the position after the last one.
    fn end(&self) -> u32 {
        exact(self.0.len())
    }
}

impl Tree {
    fn new<'a>(column: usize, rows: &[u32], spans: impl Fn(u32) -> Option<&'a [Span]>) -> Self {
        const WHOLE: &[Span] = &[(0, u32::MAX)];
        let mut ends: Vec<u32> = Vec::new();
        for row in rows {
            for (start, end) in spans(*row).unwrap_or(WHOLE) {
                ends.extend([*start, *end]);
            }
        }
        ends.sort_unstable();
        ends.dedup();
        let leaves = ends.len();
        let mut nodes = vec![Vec::new(); 2 * leaves];
        let leaf = |end: u32| leaves + ends.partition_point(|each| *each < end);
        let mut put = |node: usize, row: u32| {
            if let Some(rows) = nodes.get_mut(node) {
                rows.push(row);
            }
        };
        for row in rows {
            for (start, end) in spans(*row).unwrap_or(WHOLE) {
                let (mut low, mut high) = (leaf(*start), leaf(*end));
                while low < high {
                    if low % 2 == 1 {
                        put(low, *row);
                        low += 1;
                    }
                    if high % 2 == 1 {
                        high -= 1;
                        put(high, *row);
                    }
                    low /= 2;
                    high /= 2;
                }
            }
        }
        Self { column, ends, nodes }
    }

    fn each_list(&self, positions: &[u32], visit: &mut impl FnMut(&[u32])) {
        let Some(position) = positions.get(self.column) else {
            return;
        };
        let after = self.ends.partition_point(|end| end <= position);
        if after == 0 {
            return;
        }
        let mut node = self.ends.len() + after - 1;
        while node >= 1 {
            if let Some(rows) = self.nodes.get(node) {
                visit(rows);
            }
            node /= 2;
        }
    }
}

/// Returns the position of the value at this place of an axis.
fn exact(place: usize) -> u32 {
    // INVARIANT: a table has far fewer than 2**30 tests.
    u32::try_from(2 * place + 2).unwrap_or(u32::MAX)
}

/// Orders two values of one column. Columns have no floats, so that all values have an order.
fn order(left: &Value, right: &Value) -> Ordering {
    left.compare(right).unwrap_or(Ordering::Equal)
}
