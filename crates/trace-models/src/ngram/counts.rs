//! Counting in one pass.

use rustc_hash::FxHashMap;
use trace_core::EventId;

/// Raw counts of what followed each context, for all context lengths below an order.
///
/// Contexts are nodes of a tree: the root is the empty context, and a child has one more event *before* the events of
/// its parent. Walking down from the root along the past, most recent event first, visits longer and longer contexts.
#[derive(Clone, Debug)]
pub struct NgramCounts {
    pub(super) order: usize,
    /// The number of outcomes: types, and the end of a case where it is counted.
    pub(super) size: usize,
    /// Whether the last outcome is the end of a case.
    pub(super) end: bool,
    /// Parent and added event of each node; the root is its own parent.
    pub(super) nodes: Vec<(u32, u32)>,
    pub(super) children: FxHashMap<(u32, u32), u32>,
    /// How often an event followed a node's context.
    pub(super) followers: FxHashMap<(u32, u32), u64>,
}

impl NgramCounts {
    /// No counts yet, over `size` types, with contexts of up to `order − 1` events.
    pub fn new(size: usize, order: usize) -> Self {
        Self {
            order: order.max(1),
            size,
            end: false,
            nodes: vec![(0, 0)],
            children: FxHashMap::default(),
            followers: FxHashMap::default(),
        }
    }

    /// The same where sequences may close with the end of their case: the id behind all types.
    pub fn with_end(types: usize, order: usize) -> Self {
        Self { end: true, ..Self::new(types + 1, order) }
    }

    /// The begin token: one past the last outcome.
    pub(super) const fn begin(&self) -> u32 {
        self.size as u32
    }

    /// Counts one sequence.
    pub fn add(&mut self, events: &[EventId]) {
        for position in 0..events.len() {
            let mut node = 0;
            *self.followers.entry((node, events[position].0)).or_default() += 1;
            for lag in 1..self.order {
                if lag > position + 1 {
                    break; // nothing comes before the begin token
                }
                let event = if lag > position { self.begin() } else { events[position - lag].0 };
                let next = self.nodes.len() as u32;
                let child = *self.children.entry((node, event)).or_insert(next);
                if child == next {
                    self.nodes.push((node, event));
                }
                node = child;
                *self.followers.entry((node, events[position].0)).or_default() += 1;
            }
        }
    }

    /// Drops contexts that a model of this order does not use.
    pub(super) fn truncate(&mut self, order: usize) {
        if order >= self.order {
            return;
        }
        let mut depths = vec![0; self.nodes.len()];
        let mut renumbered = vec![u32::MAX; self.nodes.len()];
        let old = std::mem::take(&mut self.nodes);
        self.children.clear();
        for (node, (parent, event)) in old.into_iter().enumerate() {
            depths[node] = if node == 0 { 0 } else { depths[parent as usize] + 1 };
            if depths[node] >= order {
                continue;
            }
            let parent = if node == 0 { 0 } else { renumbered[parent as usize] };
            renumbered[node] = self.nodes.len() as u32;
            if node > 0 {
                self.children.insert((parent, event), renumbered[node]);
            }
            self.nodes.push((parent, event));
        }
        self.followers = std::mem::take(&mut self.followers)
            .into_iter()
            .filter(|((node, _), _)| renumbered[*node as usize] != u32::MAX)
            .map(|((node, event), count)| ((renumbered[node as usize], event), count))
            .collect();
        self.order = order;
    }
}
