//! Token rows: the input of one pass through a network.
//!
//! A *group* is a set of branches that leave the same past at the same position and have the same number of steps; a
//! training sequence is a group of one branch without a past. Every step of every branch is one row, and all rows go
//! through each layer as one matrix product. There is no padding.
//!
//! Rows are in branch order for attention networks, and in step order for recurrent networks, so that the operands of
//! each product are contiguous.

use std::ops::Range;

/// Branches with the same past and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Tokens of the shared past.
    pub(crate) start: usize,
    /// Tokens of each branch.
    pub(crate) steps: usize,
    /// Number of branches.
    pub(crate) count: usize,
    /// The group's first branch among all branches.
    pub(crate) branch: usize,
    /// The group's first row, where rows are in branch order.
    pub(crate) row: usize,
    /// The index of this group in the order of the caller.
    pub(crate) index: usize,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// All steps of a branch, then the next branch.
    Branches,
    /// All branches of a step, then the next step; longer groups come first.
    Steps,
}

/// The tokens of all rows, and their groups.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) groups: Vec<Group>,
    pub(crate) tokens: Vec<u32>,
    order: Order,
    /// The rows of each step, where rows are in step order; as many as the longest group has steps.
    steps: Vec<Range<usize>>,
}

impl Rows {
    /// Rows of groups given as `(start, steps, count)`; `token(group, branch, step)` is the token of each row.
    pub(crate) fn new(
        groups: &[(usize, usize, usize)],
        order: Order,
        token: impl Fn(usize, usize, usize) -> u32,
    ) -> Self {
        let mut list: Vec<Group> = groups
            .iter()
            .enumerate()
            .map(|(index, &(start, steps, count))| Group { start, steps, count, branch: 0, row: 0, index })
            .collect();
        if order == Order::Steps {
            list.sort_by_key(|group| std::cmp::Reverse(group.steps));
        }
        let (mut branch, mut row) = (0, 0);
        for group in &mut list {
            (group.branch, group.row) = (branch, row);
            branch += group.count;
            row += group.count * group.steps;
        }
        let mut steps = Vec::new();
        if order == Order::Steps {
            let longest = list.first().map_or(0, |group| group.steps);
            let mut from = 0;
            for step in 0..longest {
                let active: usize = list.iter().filter(|group| group.steps > step).map(|group| group.count).sum();
                steps.push(from..from + active);
                from += active;
            }
        }
        let mut rows = Self { groups: list, tokens: vec![0; row], order, steps };
        let mut tokens = std::mem::take(&mut rows.tokens);
        rows.for_each(|group, branch, step, row| tokens[row] = token(group.index, branch, step));
        rows.tokens = tokens;
        rows
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The rows of each step; only where rows are in step order.
    pub(crate) fn steps(&self) -> &[Range<usize>] {
        &self.steps
    }

    /// The number of branches.
    pub(crate) fn branches(&self) -> usize {
        self.groups.last().map_or(0, |group| group.branch + group.count)
    }

    /// Visits every row as `(group, branch within it, step, row)`.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Group, usize, usize, usize)) {
        for group in &self.groups {
            for branch in 0..group.count {
                for step in 0..group.steps {
                    let row = match self.order {
                        Order::Branches => group.row + branch * group.steps + step,
                        Order::Steps => self.steps[step].start + group.branch + branch,
                    };
                    visit(group, branch, step, row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_one_row_in_either_order() {
        let groups = [(3, 2, 2), (0, 4, 1), (5, 1, 3)];
        for order in [Order::Branches, Order::Steps] {
            let rows = Rows::new(&groups, order, |g, b, s| (g * 100 + b * 10 + s) as u32);
            assert_eq!((rows.len(), rows.branches()), (11, 6));
            let mut seen = rows.tokens.clone();
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 10, 11, 100, 101, 102, 103, 200, 210, 220]);
        }
        let rows = Rows::new(&groups, Order::Steps, |g, b, s| (g * 100 + b * 10 + s) as u32);
        assert_eq!(rows.steps(), [0..6, 6..9, 9..10, 10..11]);
        assert_eq!(rows.tokens[..6], [100, 0, 10, 200, 210, 220]);
    }
}
