//! Effects that reach the session, and looks at its state.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{Handle, Page, PageEntry, Priority, Speaker, TellError};
use centurion_protocol::markup::typed_commands;
use centurion_protocol::{AgentId, Block, Effort, Thinking, ToolResultContent};

use super::App;
use crate::attachment::Attachment;
use crate::effect::Effect;
use crate::fold::{Fact, Happening, change_lines};
use crate::frame::{Colour, Line, Style};
use crate::model::call::{subject, telling};
use crate::model::prompts::{PromptNumber, When};
use crate::surface::Scroll;
use crate::text::{MarkdownStream, foreign};

/// The bytes of a page of a transcript.
const PAGE: u64 = 256 * 1024;
/// The bytes at the end of a transcript that are shown when it is resumed, and the most lines of them.
const EARLIER: u64 = 64 * 1024;
const EARLIER_LINES: usize = 60;
/// The shortest time between two looks at the spending.
const LOOK: Duration = Duration::from_millis(250);

fn priority(when: When) -> Priority {
    match when {
        When::Now => Priority::Now,
        When::Next => Priority::Next,
        When::Later => Priority::Later,
    }
}

impl App {
    /// Hands an effect to the session, or to the program around it. What comes before the session is open waits.
    pub(super) fn hand_over(&mut self, effect: Effect) {
        let Some(handle) = self.front.session() else {
            if is_for_desk(&effect) {
                self.running.push(self.desk.carry_out(effect));
            } else {
                self.early.push(effect);
            }
            return;
        };
        match effect {
            Effect::Submit { number, text, when } => self.submit(&handle, number, text, when),
            Effect::Tell { agent, number, text, when } => {
                let id = self.world.record_id();
                let front = Arc::clone(&self.front);
                match handle.tell(agent.as_str(), id, text.clone(), priority(when)) {
                    Ok(_) => front.sends(number, id),
                    Err(TellError::Unknown(_)) => {
                        self.running.push(Box::pin(async move {
                            handle.recall_agent(agent.as_str()).await;
                            let told = handle.tell(agent.as_str(), id, text, priority(when));
                            if told.is_ok() {
                                front.sends(number, id);
                            }
                            let undelivered = |error: TellError| Fact::Undelivered {
                                number,
                                why: error.to_string(),
                            };
                            told.err().map(undelivered).into_iter().collect()
                        }));
                    }
                    Err(error) => self.says(Fact::Undelivered { number, why: error.to_string() }),
                }
            }
            Effect::Withdraw(number) => {
                let is_back = self.front.takes_back(number).is_some_and(|id| handle.withdraw(id));
                if !is_back {
                    self.says(Fact::Notice("it was read already".to_owned()));
                }
            }
            Effect::Interrupt => drop(handle.interrupt()),
            Effect::StopTask(agent) => self.stop_task(handle, agent),
            Effect::StopAll => {
                let count = handle.stop_agents();
                self.says(Fact::Notice(format!("stopping {count} agents in the background")));
            }
            Effect::Background(agent) => self.send_to_background(&handle, agent.as_ref()),
            Effect::Foreground(agent) => self.bring_to_foreground(&handle, &agent),
            Effect::SetMode(mode) => self.set_mode(&handle, &mode),
            Effect::SetEffort(level) => self.set_effort(&handle, &level),
            Effect::ToggleThinking => self.toggle_thinking(&handle),
            Effect::Page { agent, before } => self.read_page(handle, agent, before),
            Effect::Show { command } if handle.shown_by(&command).is_some() => {
                let text = handle.shown_by(&command).unwrap_or_default();
                self.says(Fact::Shown { title: format!("/{command}"), text });
            }
            effect => self.running.push(self.desk.carry_out(effect)),
        }
    }

    fn send_to_background(&self, handle: &Handle, agent: Option<&AgentId>) {
        let is_released = match agent {
            Some(agent) => handle.background_agent(agent.as_str()),
            None => handle.background_all() > 0,
        };
        let said =
            if is_released { "it continues in the background" } else { "no call waits for it" };
        self.says(Fact::Notice(said.to_owned()));
    }

    fn bring_to_foreground(&self, handle: &Handle, agent: &AgentId) {
        let said = match (handle.foreground_agent(agent.as_str()), handle.is_busy()) {
            (false, _) => "it is not at work in the background",
            (true, true) => "the main agent waits for it before its next step · b lets it continue",
            (true, false) => "the next turn waits for it · its end begins one by itself",
        };
        self.says(Fact::Notice(said.to_owned()));
    }

    fn submit(&mut self, handle: &Handle, number: PromptNumber, text: String, when: When) {
        // The answer is looked for where it will stand.
        self.surface.scroll(Scroll::Bottom);
        let id = self.world.record_id();
        let images = self.attached.remove(&number).unwrap_or_default();
        let images = images.iter().map(Attachment::block);
        let content = images.chain([Block::Text(text)]).collect();
        handle.submit_with(id, content, priority(when));
        self.front.sends(number, id);
        if when == When::Now {
            handle.interrupt();
        }
    }

    fn toggle_thinking(&mut self, handle: &Handle) {
        self.is_thinking_off = !self.is_thinking_off;
        let (thinking, said) = if self.is_thinking_off {
            (Thinking::Disabled, "the model does not think before it answers")
        } else {
            (Thinking::Auto, "the model thinks as it does by default")
        };
        handle.set_thinking(thinking);
        self.says(Fact::Notice(said.to_owned()));
    }

    fn set_effort(&self, handle: &Handle, level: &str) {
        let wanted = match level {
            "usual" => Ok(None),
            level => level.parse::<Effort>().map(Some),
        };
        let said = match wanted {
            Ok(effort) => {
                handle.set_effort(effort);
                format!("effort: {level}, from the next turn on")
            }
            Err(error) => error.to_string(),
        };
        self.says(Fact::Notice(said));
    }

    pub(super) fn says(&self, fact: Fact) {
        self.front.happens(Happening::Fact(fact));
    }

    fn stop_task(&mut self, handle: Handle, agent: AgentId) {
        self.running.push(Box::pin(async move {
            match handle.stop_task(agent.as_str()).await {
                Ok(()) => Vec::new(),
                Err(_) => vec![Fact::Notice("it is not at work".to_owned())],
            }
        }));
    }

    fn set_mode(&self, handle: &Handle, mode: &str) {
        let fact = match mode.parse() {
            Ok(wanted) => match handle.set_mode(wanted) {
                Ok(()) => Fact::Mode(mode.to_owned()),
                Err(error) => Fact::Notice(error.to_string()),
            },
            Err(_) => Fact::Notice(format!("there is no mode {mode}")),
        };
        self.says(fact);
    }

    fn read_page(&mut self, handle: Handle, agent: Option<AgentId>, before: Option<u64>) {
        self.running.push(Box::pin(async move {
            let name = agent.as_ref().map(ToString::to_string);
            // The lines of a page take some milliseconds to make, in which no key would be heard.
            let reading = tokio::task::spawn_blocking(move || {
                let page = handle.page(name.as_deref(), before, PAGE).ok()?;
                Some((page_lines(&page), page.start))
            });
            let (lines, start) = reading.await.ok().flatten().unwrap_or_default();
            vec![Fact::Page { agent, lines, start }]
        }));
    }

    /// Looks at the state of the session that no event tells: what waits, and what was spent.
    pub(super) fn look(&mut self) {
        let Some(handle) = self.front.session() else { return };
        let early = self.early.iter().filter_map(|effect| match effect {
            Effect::Submit { number, .. } | Effect::Tell { number, .. } => Some(*number),
            _ => None,
        });
        self.front.look_at_prompts(&early.collect::<Vec<PromptNumber>>());
        let now = self.front.now();
        let is_due = self.last_look.at.is_none_or(|last| now.saturating_sub(last) >= LOOK);
        let is_moving = self.front.model().next_tick().is_some();
        // A session that came to rest is looked at once more.
        let was_moving = std::mem::replace(&mut self.last_look.was_moving, is_moving);
        let came_to_rest = was_moving && !is_moving;
        if (is_due && is_moving) || came_to_rest {
            self.last_look.at = Some(now);
            let agents = handle.spending().into_iter().map(|it| (it.id, it.dollars)).collect();
            let spending = Fact::Spending { dollars: handle.usage().total_cost(), agents };
            self.front.folds(Happening::Fact(spending));
            // The model's lock is free again before the desk looks at the session.
            let moving = self.front.model().moving_table();
            if let Some((of, subject)) = moving {
                let effect = Effect::Table { of, subject, is_again: true };
                self.running.push(self.desk.carry_out(effect));
            }
        }
    }
}

/// Tells whether an effect needs no session.
fn is_for_desk(effect: &Effect) -> bool {
    match effect {
        Effect::Show { command } => {
            let name = command.split(' ').next().unwrap_or_default();
            matches!(name, "keys" | "doctor" | "model" | "trust" | "plugin" | "diff")
        }
        Effect::Table { .. }
        | Effect::Detail { .. }
        | Effect::SearchSessions { .. }
        | Effect::FindFiles(_)
        | Effect::SaveDraft { .. }
        | Effect::LookAtFiles
        | Effect::KeepSetting { .. }
        | Effect::PasteImage
        | Effect::ReadImage { .. }
        | Effect::Remember(_) => true,
        _ => false,
    }
}

/// The end of what was said in a transcript before this process.
pub(crate) fn earlier_in(transcript: &Path) -> Option<Fact> {
    let page = Page::before(transcript, None, EARLIER).ok()?;
    let mut lines = page_lines(&page);
    let surplus = lines.len().saturating_sub(EARLIER_LINES);
    lines.drain(..surplus);
    (!lines.is_empty()).then_some(Fact::Earlier(lines))
}

/// A page of a transcript, in lines.
pub fn page_lines(page: &Page) -> Vec<Line> {
    page.entries.iter().flat_map(entry_lines).collect()
}

/// A record of a transcript, in lines. A skill that a person typed is shown as it was typed.
fn entry_lines(entry: &PageEntry) -> Vec<Line> {
    let typed = Some(entry).filter(|it| it.speaker == Speaker::Person).and_then(typed_in);
    let mut lines: Vec<Line> = match typed {
        Some(typed) => marked("› ", Colour::Cyan, &typed),
        None => entry.blocks.iter().flat_map(|block| block_lines(block, entry.speaker)).collect(),
    };
    lines.push(Line::default());
    lines
}

/// The commands of skills that a record is, as they were typed.
fn typed_in(entry: &PageEntry) -> Option<String> {
    let texts = entry.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        _ => None,
    });
    typed_commands(&texts.collect::<Vec<_>>().join("\n"))
}

fn block_lines(block: &Block, speaker: Speaker) -> Vec<Line> {
    match (block, speaker) {
        (Block::Text(text), Speaker::Model) => {
            let mut stream = MarkdownStream::new();
            stream.feed(text);
            let mut lines = stream.finished_blocks();
            lines.extend(stream.finish());
            lines
        }
        (Block::Text(text), Speaker::Person) => marked("› ", Colour::Cyan, text),
        (Block::Text(text), Speaker::Runtime) => {
            marked("· ", Colour::Default, &news_of_agent(text).unwrap_or_else(|| text.clone()))
        }
        (Block::Thinking { thinking, .. }, _) => marked("∴ ", Colour::Default, thinking),
        (Block::ToolUse(call), _) => {
            let input: serde_json::Value =
                serde_json::from_str(call.input.get()).unwrap_or_default();
            let changes = change_lines(&input);
            if changes.is_empty() {
                return whole_call(&call.name, &input);
            }
            let said = format!("{} {}", call.name, subject(&call.name, &input));
            let mut lines = marked("● ", Colour::Green, &said);
            lines.extend(changes);
            lines
        }
        (Block::ToolResult(result), _) => {
            let part = |part: &ToolResultContent| match part {
                ToolResultContent::Text(text) => text.clone(),
                ToolResultContent::Image { .. } | ToolResultContent::Document { .. } => {
                    "[attachment]".to_owned()
                }
            };
            let text: Vec<String> = result.content.iter().map(part).collect();
            let colour = if result.is_error { Colour::Red } else { Colour::Default };
            marked("└ ", colour, &text.join("\n"))
        }
        _ => Vec::new(),
    }
}

/// A call with its whole input: the field that tells most behind its name, the others below.
fn whole_call(tool: &str, input: &serde_json::Value) -> Vec<Line> {
    let told = telling(tool, input);
    let head = told.map_or_else(|| tool.to_owned(), |(_, text)| format!("{tool} {text}"));
    let mut lines = marked("● ", Colour::Green, head.trim_end());
    let others = input.as_object().into_iter().flatten();
    for (name, value) in others.filter(|(name, _)| told.is_none_or(|(told, _)| told != *name)) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        for (at, line) in value.lines().enumerate() {
            let before = if at == 0 { format!("  {name}: ") } else { "    ".to_owned() };
            let shown = Line { hang: 4, ..Line::default() };
            let mut shown = Line { spans: foreign(&before, Style::DIM), ..shown };
            shown.spans.extend(foreign(line, Style::DIM));
            lines.push(shown);
        }
    }
    lines
}

/// The part of an agent's news that is for people: its summary and its result.
fn news_of_agent(text: &str) -> Option<String> {
    let news = text.split_once("<task-notification>")?.1.split_once("</task-notification>")?.0;
    let field = |name: &str| {
        let value = news.split_once(&format!("<{name}>"))?.1.split_once(&format!("</{name}>"))?.0;
        Some(value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    let summary = field("summary")?;
    Some(field("result").map_or_else(|| summary.clone(), |result| format!("{summary}\n{result}")))
}

/// The lines of a text behind a mark.
fn marked(mark: &'static str, colour: Colour, text: &str) -> Vec<Line> {
    let line = |(at, line): (usize, &str)| {
        let mut shown = Line { hang: 2, ..Line::default() };
        shown.push(if at == 0 { mark } else { "  " }, Style::of(colour));
        shown.spans.extend(foreign(line, Style::PLAIN));
        shown
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{ToolUse, ToolUseId};
    use serde_json::json;

    use super::*;

    fn texts(block: &Block, speaker: Speaker) -> Vec<String> {
        block_lines(block, speaker).iter().map(Line::text).collect()
    }

    #[test]
    fn a_call_is_shown_with_its_whole_input_and_without_quotes_and_braces() {
        let call = |tool: &str, input: &serde_json::Value| {
            let input = serde_json::value::to_raw_value(input).unwrap();
            let call = ToolUse { id: ToolUseId::new("t"), name: tool.to_owned(), input };
            texts(&Block::ToolUse(call), Speaker::Model)
        };
        assert_eq!(
            call("Bash", &json!({"command": "make\nmake check", "timeout": 5})),
            ["● Bash make", "  make check", "  timeout: 5"]
        );
        assert_eq!(
            call("Agent", &json!({"description": "Look", "prompt": "Find it.\nTell me."})),
            ["● Agent Look", "  prompt: Find it.", "    Tell me."]
        );
        assert_eq!(call("ExitWorktree", &json!({})), ["● ExitWorktree"]);
        let lines = call("Odd", &json!({"x": "a\u{1b}[31mb\u{202e}"}));
        assert!(lines.iter().all(|line| !line.contains('\u{1b}') && !line.contains('\u{202e}')));
    }

    #[test]
    fn news_of_an_agent_is_its_summary_and_its_result() {
        let news = "<task-notification>\n<task-id>a1</task-id>\n<summary>Agent \"x\" completed</summary>\n\
                    <result>a &lt; b\n&amp;lt;</result>\n</task-notification>\nThe user did not type this.";
        assert_eq!(
            texts(&Block::Text(news.to_owned()), Speaker::Runtime),
            ["· Agent \"x\" completed", "  a < b", "  &lt;"]
        );
        let other = "<task-notification> is a word";
        assert_eq!(
            texts(&Block::Text(other.to_owned()), Speaker::Runtime),
            ["· <task-notification> is a word"]
        );
    }

    #[test]
    fn a_skill_is_shown_as_it_was_typed() {
        let head = "<command-message>fix</command-message>\n<command-name>/fix</command-name>\n\
                    <command-args>a &lt;b></command-args>";
        let blocks = [head, "Fix a <b>."].map(|text| Block::Text(text.to_owned())).into();
        let entry = |speaker, blocks| Page {
            entries: vec![PageEntry { speaker, blocks }],
            ..Page::default()
        };
        let shown =
            |page: &Page| -> Vec<String> { page_lines(page).iter().map(Line::text).collect() };
        assert_eq!(shown(&entry(Speaker::Person, blocks)), ["› /fix a <b>", ""]);
        let plain = vec![Block::Text("hello".to_owned())];
        assert_eq!(shown(&entry(Speaker::Person, plain)), ["› hello", ""]);
    }
}
