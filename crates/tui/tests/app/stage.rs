//! A model under a virtual clock, and events as a session shows them.

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::sdk::{
    AgentTag, Assistant, AssistantMessage, EventBody, Init, InitPlugins, ResultTimes, RunResult,
    Stream, System, TaskNotification, TaskProgress, TaskStarted, TaskUsage, User, UserMessage,
};
use centurion_protocol::{
    AgentId, Block, Outcome, ReportedUsage, StopReason, Timestamp, ToolResult, ToolUse, ToolUseId,
};
use centurion_tui::{
    AskKind, AskNumber, Asked, Effect, Fact, Frame, Happening, Input, Key, KeyCode, Model,
    Permission, Size, fold, view,
};
use serde_json::{Value, json};

pub(crate) struct Stage {
    pub(crate) model: Model,
    pub(crate) now: Duration,
    pub(crate) effects: Vec<Effect>,
    /// All lines that were printed.
    pub(crate) printed: Vec<String>,
    asked: u64,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let mut stage = Self::without_focus();
        stage.resize(100, 40);
        stage.happens(Happening::Input(&Input::Focus(true)));
        stage
    }

    /// A terminal that does not tell whether it has the focus.
    pub(crate) fn without_focus() -> Self {
        Self {
            model: Model::default(),
            now: Duration::ZERO,
            effects: Vec::new(),
            printed: Vec::new(),
            asked: 0,
        }
    }

    pub(crate) fn happens(&mut self, happening: Happening<'_>) {
        self.effects.extend(fold(&mut self.model, self.now, happening));
        self.printed.extend(self.model.unprinted().iter().map(centurion_tui::Line::text));
        self.model.printed();
    }

    pub(crate) fn event(&mut self, event: &EventBody) {
        self.happens(Happening::Event(event));
    }

    pub(crate) fn fact(&mut self, fact: Fact) {
        self.happens(Happening::Fact(fact));
    }

    /// Time passes, with the ticks that the model wants.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some(next) = self.model.next_tick().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.happens(Happening::Tick);
            if self.model.next_tick().is_some_and(|again| again <= self.now) {
                break;
            }
        }
        self.now = end;
    }

    pub(crate) fn key(&mut self, key: Key) {
        self.happens(Happening::Input(&Input::Key(key)));
    }

    pub(crate) fn press(&mut self, code: KeyCode) {
        self.key(Key::plain(code));
    }

    pub(crate) fn ctrl(&mut self, letter: char) {
        self.key(Key::plain(KeyCode::Char(letter)).ctrl());
    }

    pub(crate) fn types(&mut self, text: &str) {
        text.chars().for_each(|char| self.press(KeyCode::Char(char)));
    }

    pub(crate) fn says(&mut self, text: &str) {
        self.types(text);
        self.press(KeyCode::Enter);
    }

    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// A question comes.
    pub(crate) fn asks(
        &mut self,
        agent: Option<&str>,
        path: &[&str],
        permission: Permission,
    ) -> AskNumber {
        self.asked += 1;
        let number = AskNumber(self.asked);
        self.happens(Happening::Asked(Box::new(Asked {
            number,
            call: None,
            agent: agent.map(AgentId::new),
            path: path.iter().map(ToString::to_string).collect(),
            kind: AskKind::Permission(Box::new(permission)),
        })));
        number
    }

    pub(crate) fn frame(&self, columns: u16, rows: u16) -> Frame {
        view(&self.model, Size { columns, rows })
    }

    /// The terminal has this size from now on.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.happens(Happening::Input(&Input::Resized(Size { columns, rows })));
    }

    /// The rows of the live region as text.
    pub(crate) fn rows(&self, columns: u16, rows: u16) -> Vec<String> {
        self.frame(columns, rows)
            .live
            .iter()
            .map(|line| line.text().trim_end().to_owned())
            .collect()
    }

    /// The whole live region as one text.
    pub(crate) fn shown(&self) -> String {
        self.rows(100, 40).join("\n")
    }
}

/// A command that is asked about, with the rule that `always` would write.
pub(crate) fn command(text: &str) -> Permission {
    Permission {
        tool: "Bash".to_owned(),
        input: json!({"command": text}),
        because: format!("no rule or mode lets `{text}` run"),
        rule: None,
        server: None,
        reach: Some("changes this folder · sandbox on, no network".to_owned()),
        suggestions: vec![json!({
            "type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": text}],
        })],
    }
}

pub(crate) fn init() -> EventBody {
    EventBody::System(System::Init(Arc::new(Init {
        cwd: "/work".to_owned(),
        tools: Vec::new(),
        mcp_servers: Vec::new(),
        model: "opus".to_owned(),
        permission_mode: "default".to_owned(),
        slash_commands: Vec::new(),
        terminal_slash_commands: [],
        api_key_source: "none",
        claude_code_version: "2",
        centurion_version: "0",
        output_style: "default".to_owned(),
        agents: Vec::new(),
        skills: Vec::new(),
        plugins: InitPlugins::default(),
        additional_directories: Vec::new(),
        memory_paths: None,
        capabilities: &[],
        effort: None,
        betas: Vec::new(),
    })))
}

pub(crate) fn started(id: &str, name: &str, task: &str, parent: Option<&str>) -> EventBody {
    EventBody::System(System::TaskStarted(Box::new(TaskStarted {
        task_id: id.to_owned(),
        description: task.to_owned(),
        subagent_type: Some(name.to_owned()),
        parent_task_id: parent.map(AgentId::new),
        is_backgrounded: true,
        task_type: "local_agent",
        ..TaskStarted::default()
    })))
}

pub(crate) fn progress(id: &str, doing: &str, calls: u64, tokens: u64) -> EventBody {
    EventBody::System(System::TaskProgress(Box::new(TaskProgress {
        task_id: id.to_owned(),
        run_id: "r".to_owned(),
        tool_use_id: None,
        description: doing.to_owned(),
        subagent_type: String::new(),
        usage: TaskUsage { total_tokens: tokens, tool_uses: calls, duration_ms: 0 },
        last_tool_name: None,
        summary: None,
    })))
}

pub(crate) fn ended(id: &str, status: &'static str, summary: &str) -> EventBody {
    EventBody::System(System::TaskNotification(Box::new(TaskNotification {
        task_id: id.to_owned(),
        run_id: None,
        tool_use_id: None,
        status,
        output_file: String::new(),
        summary: summary.to_owned(),
        usage: Some(TaskUsage { total_tokens: 2600, tool_uses: 3, duration_ms: 1300 }),
        worktree: None,
    })))
}

pub(crate) fn said(content: Vec<Block>, agent: Option<AgentTag>) -> EventBody {
    EventBody::Assistant(Box::new(Assistant {
        message: AssistantMessage {
            id: "m".to_owned(),
            kind: "message",
            role: "assistant",
            model: "opus".to_owned(),
            content,
            stop_reason: Some(StopReason::EndTurn),
            stop_sequence: None,
            usage: ReportedUsage::default(),
        },
        parent_tool_use_id: None,
        agent,
        timestamp: Timestamp::from(jiff::Timestamp::UNIX_EPOCH),
        request_id: None,
        error: None,
        supersedes: Vec::new(),
        aborted: false,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
    }))
}

pub(crate) fn text(text: &str) -> EventBody {
    said(vec![Block::text(text)], None)
}

pub(crate) fn call(id: &str, tool: &str, input: &Value) -> EventBody {
    let input = serde_json::value::to_raw_value(input).unwrap();
    said(
        vec![Block::ToolUse(ToolUse { id: ToolUseId::new(id), name: tool.to_owned(), input })],
        None,
    )
}

pub(crate) fn result(id: &str, text: &str) -> EventBody {
    EventBody::User(User {
        message: UserMessage {
            role: "user",
            content: vec![Block::ToolResult(ToolResult::text(ToolUseId::new(id), text))],
        },
        parent_tool_use_id: None,
        agent: None,
        timestamp: Timestamp::from(jiff::Timestamp::UNIX_EPOCH),
        tool_use_result: None,
        is_synthetic: false,
        is_replay: false,
    })
}

pub(crate) fn piece(value: &Value) -> EventBody {
    let event = serde_json::value::to_raw_value(value).unwrap();
    EventBody::StreamEvent(Stream {
        event,
        parent_tool_use_id: None,
        agent_id: None,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
    })
}

/// The pieces of a text that streams in.
pub(crate) fn streamed(parts: &[&str]) -> Vec<EventBody> {
    let mut pieces = vec![
        piece(&json!({"type": "message_start"})),
        piece(
            &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
    ];
    let delta = |text: &&str| {
        piece(
            &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        )
    };
    pieces.extend(parts.iter().map(delta));
    pieces.push(piece(&json!({"type": "content_block_stop", "index": 0})));
    pieces
}

pub(crate) fn turn_end() -> EventBody {
    EventBody::Result(Box::new(RunResult {
        subtype: "success",
        is_error: false,
        outcome: Outcome::Completed,
        result: String::new(),
        num_turns: 1,
        duration_ms: 1,
        duration_api_ms: 1,
        stop_reason: None,
        total_cost_usd: 0.11,
        usage: ReportedUsage::default(),
        model_usage: indexmap::IndexMap::default(),
        permission_denials: Vec::new(),
        structured_output: None,
        deferred_tool_use: None,
        terminal_reason: "completed",
        subagent_stats: None,
        api_error_status: None,
        errors: None,
        user_message_uuid: None,
        user_message_uuids: Vec::new(),
        queued_turn_count: 0,
        times: ResultTimes::default(),
        result_index: 0,
        unfinished_agents: Vec::new(),
        origin: None,
    }))
}
