//! The router: paths by segments, literals before parameters.

use std::borrow::Cow;
use std::collections::HashMap;

use http::Method;

use crate::table::Target;
use crate::text::percent_decode;
use vesper_auth::TableError;

const MAX_SEGMENTS: usize = 64;

/// A segment of a path template.
pub(crate) struct Segment<'a> {
    text: &'a str,
    /// Name of the parameter.
    pub(crate) hole: Option<&'a str>,
}

/// Returns the segments of a template such as `/orders/{order_id}/lines`.
pub(crate) fn segments_of_template(path: &str) -> Result<Vec<Segment<'_>>, TableError> {
    let error = |problem: &str| TableError(format!("path `{path}`: {problem}"));
    let rest = path
        .strip_prefix('/')
        .ok_or_else(|| error("begins with no `/`"))?;
    let segments: Vec<Segment<'_>> = rest
        .split('/')
        .map(|text| Segment {
            text,
            hole: text.strip_prefix('{').and_then(|name| name.strip_suffix('}')),
        })
        .collect();
    if segments.len() > MAX_SEGMENTS {
        return Err(error("has more than 64 segments"));
    }
    if segments.iter().any(|each| {
        each.hole
            .map_or(each.text.contains(['{', '}', '?', '#', '%']), str::is_empty)
    }) {
        return Err(error("a parameter is a whole segment, `{name}`"));
    }
    Ok(segments)
}

#[derive(Debug, Default)]
pub(crate) struct Routes {
    /// Paths without parameters, as they are written.
    fixed: HashMap<String, Vec<(Method, Target)>>,
    nodes: Vec<TrieNode>,
}

#[derive(Debug, Default)]
struct TrieNode {
    literals: HashMap<String, usize>,
    parameter: Option<usize>,
    targets: Vec<(Method, Target)>,
}

/// The routes of a path.
#[derive(Debug)]
pub(crate) enum Found {
    /// The target and the decoded values of its parameters.
    Target(Target, Vec<String>),
    /// The path has routes for these methods only.
    Methods(Vec<Method>),
    Nothing,
    /// The path has an escape that is not UTF-8.
    Malformed,
}

impl Routes {
    pub(crate) fn add(&mut self, method: &Method, path: &str, target: Target) -> Result<(), TableError> {
        let segments = segments_of_template(path)?;
        let mut place = self.root();
        for segment in &segments {
            let next = self.nodes.len();
            let Some(node) = self.nodes.get_mut(place) else {
                break;
            };
            place = match segment.hole {
                Some(_) => *node.parameter.get_or_insert(next),
                None => *node.literals.entry(segment.text.to_owned()).or_insert(next),
            };
            if place == next {
                self.nodes.push(TrieNode::default());
            }
        }
        let Some(node) = self.nodes.get_mut(place) else {
            return Ok(());
        };
        if node.targets.iter().any(|(each, _)| each == method) {
            return Err(TableError(format!("two endpoints answer {method} {path}")));
        }
        node.targets.push((method.clone(), target));
        if segments.iter().all(|each| each.hole.is_none()) {
            self.fixed
                .entry(path.to_owned())
                .or_default()
                .push((method.clone(), target));
        }
        Ok(())
    }

    fn root(&mut self) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(TrieNode::default());
        }
        0
    }

    /// Finds the route of a method and a path. HEAD takes the route of GET.
    pub(crate) fn find(&self, method: &Method, path: &str) -> Found {
        let wanted = if method == Method::HEAD {
            &Method::GET
        } else {
            method
        };
        if let Some(target) = self
            .fixed
            .get(path)
            .and_then(|targets| target_of(targets, wanted))
        {
            return Found::Target(target, Vec::new());
        }
        let Some(rest) = path.strip_prefix('/') else {
            return Found::Nothing;
        };
        let mut segments = Vec::new();
        for each in rest.split('/') {
            if segments.len() == MAX_SEGMENTS {
                return Found::Nothing;
            }
            match percent_decode(each, false) {
                Some(segment) => segments.push(segment),
                None => return Found::Malformed,
            }
        }
        let mut search = Search {
            routes: self,
            wanted,
            segments: &segments,
            values: Vec::new(),
            methods: Vec::new(),
        };
        match search.walk(0, 0) {
            Some(target) => {
                let values = search.values;
                let value = |position: usize| {
                    segments
                        .get(position)
                        .map_or_else(String::new, ToString::to_string)
                };
                Found::Target(target, values.into_iter().map(value).collect())
            }
            None if search.methods.is_empty() => Found::Nothing,
            None => Found::Methods(search.methods),
        }
    }
}

fn target_of(targets: &[(Method, Target)], method: &Method) -> Option<Target> {
    targets
        .iter()
        .find(|(each, _)| each == method)
        .map(|(_, target)| *target)
}

/// A search over all matching routes. It visits each node of the trie at most once.
struct Search<'a> {
    routes: &'a Routes,
    wanted: &'a Method,
    segments: &'a [Cow<'a, str>],
    /// Positions of the segments that parameters take.
    values: Vec<usize>,
    methods: Vec<Method>,
}

impl Search<'_> {
    fn walk(&mut self, place: usize, position: usize) -> Option<Target> {
        let node = self.routes.nodes.get(place)?;
        let Some(segment) = self.segments.get(position) else {
            let target = target_of(&node.targets, self.wanted);
            for (method, _) in &node.targets {
                if !self.methods.contains(method) {
                    self.methods.push(method.clone());
                }
            }
            return target;
        };
        let literal = node.literals.get(segment.as_ref());
        if let Some(target) = literal.and_then(|next| self.walk(*next, position + 1)) {
            return Some(target);
        }
        let parameter = node.parameter.filter(|_| !segment.is_empty())?;
        self.values.push(position);
        let found = self.walk(parameter, position + 1);
        if found.is_none() {
            self.values.pop();
        }
        found
    }
}
