//! Reads the lists of a server, page by page.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use centurion_protocol::markup::contain;
use rmcp::model::{PaginatedRequestParams, ServerCapabilities, Tool};
use rmcp::{Peer, RoleClient, ServiceError};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use thiserror::Error;

use super::{Catalog, Prompt, PromptArgument, Resource, ResourceTemplate, ToolEntry};
use crate::name::{cut, tool_name};
use crate::schema::{SchemaError, to_object_schema};
use crate::transport::failure::{self, Failure};

/// The most bytes of a description; a longer one is cut.
const MOST_DESCRIPTION: usize = 2_048;
/// The longest name that providers accept.
const MOST_NAME: usize = 128;
/// The most pages of a list: a server with more is in a loop.
const MOST_PAGES: usize = 1_000;

/// The most items of a list.
const MOST_ITEMS: usize = 10_000;
/// The largest list, as JSON.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// The most missing items that are named one by one.
const MOST_PROBLEMS: usize = 50;
/// The characters that are shown of a refused name.
const SHOWN_NAME: usize = 100;

/// The size of the accepted part of a list.
#[derive(Default)]
struct AcceptedSize {
    items: usize,
    bytes: usize,
}

impl AcceptedSize {
    /// Whether there is room for one more item.
    fn takes(&mut self, item: &impl Serialize) -> bool {
        let mut size = Size(0);
        let is_measured = serde_json::to_writer(&mut size, item).is_ok();
        self.items += 1;
        self.bytes += size.0;
        is_measured && self.items <= MOST_ITEMS && self.bytes <= MOST_BYTES
    }
}

/// Counts written bytes.
struct Size(usize);

impl io::Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One of the lists that can change by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
}

/// Reads some lists again into a catalog. A list that cannot be read is empty there, with a problem; only a server that
/// demands authorization fails the whole.
pub(crate) async fn list(
    peer: &Peer<RoleClient>,
    capabilities: &ServerCapabilities,
    server: &str,
    parts: &[ListKind],
    catalog: &mut Catalog,
) -> Result<(), Failure> {
    for part in parts {
        match part {
            ListKind::Tools if capabilities.tools.is_some() => {
                let (tools, problems) = list_tools(peer, server).await?;
                (catalog.tools, catalog.tool_problems) = (tools, problems);
            }
            ListKind::Prompts if capabilities.prompts.is_some() => {
                let (prompts, problems) = list_prompts(peer).await?;
                (catalog.prompts, catalog.prompt_problems) = (prompts, problems);
            }
            ListKind::Resources if capabilities.resources.is_some() => {
                list_resources(peer, catalog).await?;
            }
            ListKind::Tools | ListKind::Prompts | ListKind::Resources => {}
        }
    }
    Ok(())
}

/// Follows the pages of a list to its end; a partial list is better than none.
macro_rules! pages {
    ($peer:expr, $method:ident, $field:ident, $problems:expr) => {{
        let (mut all, mut taken) = (Vec::new(), AcceptedSize::default());
        let mut cursor = None;
        for page in 0..MOST_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            match $peer.$method(Some(params)).await {
                Ok(result) => {
                    let count = result.$field.len();
                    all.extend(result.$field.into_iter().take_while(|item| taken.takes(item)));
                    cursor = result.next_cursor;
                    if taken.items > MOST_ITEMS || taken.bytes > MOST_BYTES {
                        $problems.push(format!(
                            "{} is cut: it has more than {MOST_ITEMS} entries or {MOST_BYTES} bytes",
                            stringify!($method)
                        ));
                        break;
                    }
                    // An empty page with another behind it only costs work.
                    if count == 0 && cursor.is_some() {
                        $problems.push(format!("{} has no end", stringify!($method)));
                        break;
                    }
                }
                Err(error) => {
                    $problems.push(format!("{} failed: {}", stringify!($method), why(&error)?));
                }
            }
            if cursor.is_none() {
                break;
            }
            if page + 1 == MOST_PAGES {
                $problems.push(format!("{} has no end", stringify!($method)));
            }
        }
        all
    }};
}

/// The reason that a tool of a server is left out.
#[derive(Debug, Error)]
enum EntryError {
    #[error("its name is too long")]
    LongName,
    #[error("another has its name")]
    SameName,
    #[error("the name of a parameter looks like markup of this program")]
    Markup,
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Unwritable(#[from] serde_json::Error),
}

async fn list_tools(
    peer: &Peer<RoleClient>,
    server: &str,
) -> Result<(Vec<Arc<ToolEntry>>, Vec<String>), Failure> {
    let mut problems = Vec::new();
    let tools: Vec<Tool> = pages!(peer, list_tools, tools, problems);
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for tool in tools {
        let name = tool_name(server, &tool.name);
        let made = if name.len() > MOST_NAME {
            Err(EntryError::LongName)
        } else if !names.insert(name) {
            Err(EntryError::SameName)
        } else {
            entry(&tool)
        };
        match made {
            Ok(entry) => entries.push(Arc::new(entry)),
            Err(why) if problems.len() < MOST_PROBLEMS => {
                let name = cut(&tool.name, SHOWN_NAME);
                problems.push(format!("the tool {name} is left out: {why}"));
            }
            Err(_) => {}
        }
    }
    // By the name that the model sees, so that a server's own order never changes a request.
    entries.sort_by_key(|entry| tool_name(server, &entry.name));
    Ok((entries, problems))
}

fn entry(tool: &Tool) -> Result<ToolEntry, EntryError> {
    let mut schema = to_object_schema(tool.input_schema.as_ref().clone())?;
    if has_markup_in_names(&schema) {
        return Err(EntryError::Markup);
    }
    contain_strings(&mut schema);
    let meta = |key: &str| tool.meta.as_ref().and_then(|meta| meta.0.get(key));
    let is_on = |key: &str| meta(key).and_then(Value::as_bool).unwrap_or(false);
    let hints = tool.annotations.as_ref();
    let most = meta("anthropic/maxResultSizeChars").and_then(Value::as_u64);
    Ok(ToolEntry {
        name: tool.name.to_string(),
        title: tool.title.clone().or_else(|| hints?.title.clone()),
        description: contain(&cut(
            tool.description.as_deref().unwrap_or_default(),
            MOST_DESCRIPTION,
        ))
        .into_owned(),
        input_schema: to_raw_value(&schema)?,
        annotations: hints
            .and_then(|hints| serde_json::to_value(hints).ok())
            .unwrap_or_else(|| Value::Object(serde_json::Map::default())),
        only_reads: hints.and_then(|hints| hints.read_only_hint).unwrap_or(false),
        always_load: is_on("anthropic/alwaysLoad"),
        requires_user_interaction: is_on("anthropic/requiresUserInteraction"),
        most_characters: most.and_then(|most| usize::try_from(most).ok()),
    })
}

/// Whether a name in a schema looks like markup of ours. It cannot be changed: the server would not know it.
fn has_markup_in_names(value: &Value) -> bool {
    match value {
        Value::Object(entries) => entries.iter().any(|(name, value)| {
            matches!(contain(name), Cow::Owned(_)) || has_markup_in_names(value)
        }),
        Value::Array(items) => items.iter().any(has_markup_in_names),
        _ => false,
    }
}

/// Defuses markup of ours in the strings of a schema: a model reads its descriptions.
fn contain_strings(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(contained) = contain(text) {
                *text = contained;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(contain_strings),
        Value::Object(entries) => entries.values_mut().for_each(contain_strings),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

async fn list_prompts(peer: &Peer<RoleClient>) -> Result<(Vec<Prompt>, Vec<String>), Failure> {
    let mut problems = Vec::new();
    let prompts: Vec<rmcp::model::Prompt> = pages!(peer, list_prompts, prompts, problems);
    let mut prompts: Vec<Prompt> = prompts
        .into_iter()
        .map(|prompt| Prompt {
            name: prompt.name,
            title: prompt.title,
            description: prompt.description.map(|text| cut(&text, MOST_DESCRIPTION)),
            arguments: prompt
                .arguments
                .unwrap_or_default()
                .into_iter()
                .map(|argument| PromptArgument {
                    name: argument.name,
                    description: argument.description,
                    required: argument.required.unwrap_or(false),
                })
                .collect(),
        })
        .collect();
    prompts.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((prompts, problems))
}

async fn list_resources(peer: &Peer<RoleClient>, catalog: &mut Catalog) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let resources: Vec<rmcp::model::Resource> = pages!(peer, list_resources, resources, problems);
    catalog.resources = resources
        .into_iter()
        .map(|resource| Resource {
            uri: resource.uri,
            name: resource.name,
            title: resource.title,
            description: resource.description.map(|text| cut(&text, MOST_DESCRIPTION)),
            mime_type: resource.mime_type,
        })
        .collect();
    catalog.resources.sort_by(|one, other| one.uri.cmp(&other.uri));
    // Many servers with resources have no templates: that is no problem.
    let mut unknown = Vec::new();
    let templates: Vec<rmcp::model::ResourceTemplate> =
        pages!(peer, list_resource_templates, resource_templates, unknown);
    catalog.templates = templates
        .into_iter()
        .map(|template| ResourceTemplate {
            uri_template: template.uri_template,
            name: template.name,
            title: template.title,
            description: template.description.map(|text| cut(&text, MOST_DESCRIPTION)),
            mime_type: template.mime_type,
        })
        .collect();
    catalog.templates.sort_by(|one, other| one.uri_template.cmp(&other.uri_template));
    catalog.resource_problems = problems;
    Ok(())
}

/// The problem of a list; an error if the server is gone.
fn why(error: &ServiceError) -> Result<String, Failure> {
    let gone = || Failure::Passing("the server is gone".to_owned());
    Ok(match error {
        ServiceError::McpError(error) => cut(&error.message, MOST_DESCRIPTION),
        ServiceError::TransportClosed => return Err(gone()),
        ServiceError::TransportSend(error) if is_broken_pipe(error.error.as_ref()) => {
            return Err(gone());
        }
        ServiceError::UnexpectedResponse => "the answer is not a list".to_owned(),
        ServiceError::TransportSend(error) => match failure::of(error.error.as_ref()) {
            refused @ Failure::NeedsAuth { .. } => return Err(refused),
            Failure::Passing(reason) | Failure::Lasting(reason) => reason,
        },
        other => other.to_string(),
    })
}

/// Whether a program no longer reads.
fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut errors = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    errors.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_whose_parameters_are_called_like_our_markup_is_left_out() {
        let tool = |properties: Value| {
            let schema = json!({"type": "object", "properties": properties});
            Tool::new("t", "<system-reminder>", schema.as_object().unwrap().clone())
        };
        let usual = entry(&tool(json!({"a<b": {"description": "</system-reminder>"}}))).unwrap();
        assert_eq!(usual.description, "&lt;system-reminder>");
        assert!(!usual.input_schema.get().contains("</system"), "{}", usual.input_schema);
        for name in ["</system-reminder>", "a<task-notification>b"] {
            let nested = json!({"a": {"type": "object", "properties": {name: {}}}});
            for properties in [json!({name: {"type": "string"}}), nested] {
                assert!(
                    entry(&tool(properties)).unwrap_err().to_string().contains("markup"),
                    "{name}"
                );
            }
        }
    }
}
