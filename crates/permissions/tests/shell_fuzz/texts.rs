//! Texts for the shell, generated from numbers: valid scripts, scripts with a few characters changed, and pieces in any
//! order.

/// Reproducible pseudo-random numbers.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below the bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    pub(crate) fn pick<'a>(&mut self, pieces: &[&'a str]) -> &'a str {
        pieces[self.below(pieces.len())]
    }
}

/// Programs: two that rules are about, some that only read, one that prints a command, one that fails.
const PROGRAMS: &[&str] =
    &["aa", "aa", "bb", "bb", "cc", "cat", "ls", "head", "echo", "gen", "no", "true"];

/// Pieces with a meaning for the shell, and some that only seem to have one.
const PIECES: &[&str] = &[
    "aa",
    "bb",
    "cc",
    "cat",
    "ls",
    "echo",
    "gen",
    "no",
    "true",
    "false",
    ":",
    "aa x",
    "bb f1",
    "cat f1",
    "echo bb",
    "x",
    "y",
    "f1",
    "secret",
    "d/f2",
    "sec*",
    "s?cret",
    "[s]ecret",
    ".h*",
    "*",
    "d",
    "..",
    "~",
    "{bb,x}",
    "{a,b}",
    "{",
    "}",
    "{ ",
    "; }",
    "(",
    ")",
    "((",
    "))",
    "[[",
    "]]",
    "[[ ",
    " ]]",
    "[",
    "]",
    " ",
    " ",
    " ",
    " ",
    " ",
    " ",
    "\t",
    "\n",
    "\n",
    ";",
    ";;",
    "; ",
    "&",
    "&&",
    " && ",
    "|",
    "||",
    " | ",
    "|&",
    ">",
    ">>",
    "> out",
    ">ok/o",
    ">/dev/null",
    "2>&1",
    ">&2",
    "&>",
    "<",
    "< f1",
    "<>",
    "<<X\n",
    "\nX\n",
    "<<'X'\n",
    "<<-X\n",
    "<<<",
    "<(",
    ">(",
    "$",
    "$(",
    "`",
    "${",
    "${x:-",
    "${x:=",
    "${x:+",
    "${x#",
    "${#x}",
    "${!x}",
    "$x",
    "\"$x\"",
    "$((",
    "$[",
    "$'",
    "\\x62\\x62",
    "$\"",
    "'",
    "\"",
    "\\",
    "\\\n",
    "#",
    " #",
    "!",
    "! ",
    "=",
    "x=",
    "x=bb",
    "x=1",
    "y=$x",
    "a[$(bb)0]",
    "[[:alpha:]]",
    "cd d",
    "pushd d",
    "l1",
    "x+=b",
    "x=(",
    "x[0]=",
    "A=1 ",
    "if ",
    "; then ",
    "; fi",
    "else",
    "for x in ",
    "; do ",
    "; done",
    "case x in ",
    "x) ",
    ";; esac",
    "aa() ",
    "time ",
    "eval ",
    "\r",
    "\u{b}",
    "\u{a0}",
    "\u{85}",
];

/// A text for this number.
pub(crate) fn text(seed: u64) -> String {
    let mut numbers = Numbers::new(seed);
    for _ in 0..4 {
        numbers.next();
    }
    match numbers.below(10) {
        0..=3 => Grammar { numbers: &mut numbers, budget: 14 }.script(),
        4..=6 => {
            let text = Grammar { numbers: &mut numbers, budget: 10 }.script();
            mutate(&text, &mut numbers)
        }
        _ => {
            let count = 1 + numbers.below(13);
            (0..count).map(|_| numbers.pick(PIECES)).collect()
        }
    }
}

/// Changes a text at a few positions.
fn mutate(text: &str, numbers: &mut Numbers) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(characters.len() + 1);
        match numbers.below(4) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 if at < characters.len() => {
                let piece: Vec<char> = numbers.pick(PIECES).chars().collect();
                characters.splice(at..=at, piece);
            }
            2 if characters.len() > 1 => {
                let other = numbers.below(characters.len());
                let at = at.min(characters.len() - 1);
                characters.swap(at, other);
            }
            _ => {
                let piece: Vec<char> = numbers.pick(PIECES).chars().collect();
                characters.splice(at..at, piece);
            }
        }
    }
    characters.into_iter().collect()
}

/// Makes valid scripts.
struct Grammar<'a> {
    numbers: &'a mut Numbers,
    /// The nesting that is still allowed.
    budget: usize,
}

impl Grammar<'_> {
    fn script(&mut self) -> String {
        let count = 1 + self.numbers.below(3);
        let mut script = String::new();
        for index in 0..count {
            if index > 0 {
                script.push_str(
                    self.numbers.pick(&["\n", "; ", ";", " && ", " || ", " | ", "\n\n", " &\n"]),
                );
            }
            script.push_str(&self.command());
        }
        if self.numbers.one_in(8) {
            script.push_str(" # bb x");
        }
        script
    }

    fn spend(&mut self) -> bool {
        let rich = self.budget > 0;
        self.budget = self.budget.saturating_sub(1);
        rich
    }

    fn command(&mut self) -> String {
        if !self.spend() {
            return format!("aa {}", self.plain());
        }
        match self.numbers.below(44) {
            0 => format!("({})", self.command()),
            1 => format!("{{ {}; }}", self.command()),
            2 => format!("if {}; then {}; fi", self.command(), self.command()),
            3 => format!(
                "if {}; then {}; else {}; fi",
                self.command(),
                self.command(),
                self.command()
            ),
            4 => format!("for x in {} {}; do {}; done", self.word(), self.word(), self.command()),
            5 => format!("while {}; do {}; break; done", self.command(), self.command()),
            6 => format!(
                "case {} in {}) {};; *) {};; esac",
                self.word(),
                self.plain(),
                self.command(),
                self.command()
            ),
            7 => format!("f() {{ {}; }}; f {}", self.command(), self.word()),
            8 => format!("! {}", self.command()),
            9 => format!("{} | {}", self.command(), self.command()),
            10 => format!("{}={}", self.variable(), self.word()),
            11 => format!("{}={} {}", self.variable(), self.word(), self.simple()),
            12 => format!("{}=({} {})", self.variable(), self.word(), self.word()),
            13 => format!("[[ {} == {} ]]", self.word(), self.word()),
            14 => format!(
                "[[ -n {} && {} -eq {} ]]",
                self.word(),
                self.arithmetic(),
                self.arithmetic()
            ),
            15 => format!("(({}))", self.arithmetic()),
            16 => format!("eval {}", self.quoted_script()),
            17 => format!("trap {} EXIT", self.quoted_script()),
            18 => format!("{} <<X\n{} {}\nX", self.simple(), self.word(), self.expansion()),
            19 => format!("{} <<'X'\n{}\nX", self.simple(), self.plain()),
            20 => format!("{} <<< {}", self.simple(), self.word()),
            21 => format!("read {} <<< {}", self.variable(), self.word()),
            22 => format!(
                "{} {} {}",
                self.numbers.pick(&["export", "declare", "readonly", "declare -i", "declare -n"]),
                self.declaration(),
                self.declaration()
            ),
            23 => format!("printf -v {} %s {}", self.variable(), self.word()),
            24 => format!("set -- {} {}; {}", self.word(), self.word(), self.simple()),
            25 => format!("let {}", self.word()),
            26 => format!("test -v {}", self.word()),
            27 => format!(
                "cd {}; {}",
                self.numbers.pick(&["d", ".", "no", "..", "\"$x\""]),
                self.simple()
            ),
            28 => format!(
                "{} {}",
                self.numbers.pick(&["command", "builtin", "time", "command -p", "coproc"]),
                self.simple()
            ),
            29 => format!("for ((x=0; x<1; x++)); do {}; done", self.command()),
            30 => format!("{} <<< {}", self.reading(), self.value()),
            31 => format!("{}; (({}))", self.assigning(), self.arithmetic()),
            32 => format!("{}; {}", self.assigning(), self.simple()),
            33 => format!("[ {} {} ]", self.tested(), self.value()),
            34 => format!("test {} {} {}", self.tested(), self.value(), self.value()),
            35 => format!("{}; {} ../{}", self.moving(), self.reader(), self.plain()),
            36 => format!("{}; {} {}", self.moving(), self.reader(), self.plain()),
            37 => format!("({} && {})", self.moving(), self.simple()),
            38 => format!("f() {{ {}; }}; {}; f {}", self.simple(), self.moving(), self.plain()),
            39 => format!("{} {}", self.reader(), self.bracket()),
            _ => self.simple(),
        }
    }

    /// A builtin that reads into variables, with its options in a bundle or apart.
    fn reading(&mut self) -> String {
        let name = self.variable();
        match self.numbers.below(8) {
            0 => format!("read -ra{name}"),
            1 => format!("read -ra {name}"),
            2 => format!("read -r {name} y"),
            3 => format!("read -p {} {name}", self.plain()),
            4 => format!("mapfile -t {name}"),
            5 => format!("mapfile -tC {} -c 1 {name}", self.plain()),
            6 => format!("read {{{name},y}}"),
            _ => format!("readarray -tn1 {name}"),
        }
    }

    /// A builtin that assigns to a variable without looking like it.
    fn assigning(&mut self) -> String {
        let (name, value) = (self.variable(), self.value());
        match self.numbers.below(9) {
            0 => format!("printf -v{name} %s {value}"),
            1 => format!("printf -v {name} %s {value}"),
            2 => format!("declare '{name}='{value}"),
            3 => format!("export \"{name}=\"{value}"),
            4 => format!("declare -a {name}={value}"),
            5 => format!("builtin declare {name}={value}"),
            6 => format!("{} <<< {value}", self.reading()),
            7 => {
                format!("{}={value}", self.numbers.pick(&["RANDOM", "OPTIND", "HISTCMD", "x", "_"]))
            }
            _ => format!(": {value}"),
        }
    }

    /// A text with a possible meaning as arithmetic, list or path.
    fn value(&mut self) -> String {
        match self.numbers.below(6) {
            0 => "'a[$(bb)0]'".to_owned(),
            1 => "'($(bb))'".to_owned(),
            2 => self.numbers.pick(&["secret", "l1", "d/l2", "dl/secret", "d", "bb"]).to_owned(),
            3 => self.bracket(),
            _ => self.word(),
        }
    }

    fn tested(&mut self) -> &'static str {
        self.numbers.pick(&["-v", "\"$x\"", "$x", "${x:--v}", "! -v", "-n", "-R", "x = x -a -v"])
    }

    /// A pattern with a class.
    fn bracket(&mut self) -> String {
        self.numbers
            .pick(&[
                "s[[:alpha:]]cret",
                "[[:alpha:]]ecret",
                "s[^[:digit:]]cret",
                "s[[=e=]]cret",
                "s[[.e.]]cret",
                "[]s]ecret",
                "[![:digit:]x]ecret",
                "[[s]ecret",
                "l[[:digit:]]",
                "l?",
                "l*",
                "d*/l?",
            ])
            .to_owned()
    }

    fn reader(&mut self) -> &'static str {
        self.numbers.pick(&["cat", "cat", "aa", "head", "cc"])
    }

    /// A change of the shell's directory.
    fn moving(&mut self) -> String {
        self.numbers
            .pick(&[
                "cd d",
                "cd d*",
                "x=d; cd $x",
                "x=d; cd \"$x\"",
                "pushd d",
                "pushd d; popd",
                "cd d; cd -",
                "cd dl",
                "cd $(echo d)",
                "command cd d",
                "builtin cd d",
                "eval cd d",
                "cd -- d",
                "cd -P dl",
                "f() { cd d; }; f",
                "HOME=d; cd",
                "CDPATH=d; cd .",
                "for y in d; do cd $y; done",
            ])
            .to_owned()
    }

    fn declaration(&mut self) -> String {
        if self.numbers.one_in(3) {
            self.word()
        } else {
            format!("{}={}", self.variable(), self.word())
        }
    }

    fn quoted_script(&mut self) -> String {
        let script = self.command();
        if script.contains('\'') {
            format!("\"{}\"", script.replace(['"', '\\'], ""))
        } else {
            format!("'{script}'")
        }
    }

    fn simple(&mut self) -> String {
        let mut command = match self.numbers.below(8) {
            0 => self.word(),
            _ => self.numbers.pick(PROGRAMS).to_owned(),
        };
        for _ in 0..self.numbers.below(3) {
            command.push_str(self.numbers.pick(&[" ", " ", " ", "\t", " \\\n"]));
            command.push_str(&self.word());
        }
        if self.numbers.one_in(5) {
            let target = self.word();
            let operator = self
                .numbers
                .pick(&[" > ", " >> ", " 2> ", " < ", " &> ", ">|", " <> ", " >&", "<"]);
            command.push_str(operator);
            command.push_str(&target);
        }
        if self.numbers.one_in(6) {
            command.push_str(self.numbers.pick(&[
                " > out",
                " > ok/o",
                " > /dev/null",
                " 2>&1",
                " < f1",
                " >&2",
                " > secret",
            ]));
        }
        command
    }

    fn variable(&mut self) -> &'static str {
        self.numbers.pick(&["x", "x", "y", "z", "PATH", "IFS", "x[1]"])
    }

    fn plain(&mut self) -> &'static str {
        self.numbers.pick(&[
            "x",
            "y",
            "1",
            "f1",
            "secret",
            "l1",
            "dl/secret",
            "bb",
            "aa",
            "d/f2",
            "-n",
            "a=b",
            "*",
            "out",
            ".hidden",
        ])
    }

    fn word(&mut self) -> String {
        let count = 1 + usize::from(self.numbers.one_in(3));
        (0..count).map(|_| self.piece()).collect()
    }

    fn piece(&mut self) -> String {
        if !self.spend() {
            return self.plain().to_owned();
        }
        match self.numbers.below(22) {
            0 => format!("'{}'", self.plain()),
            1 => format!("\"{}\"", self.plain()),
            2 => format!("\"{} {}\"", self.plain(), self.expansion()),
            3 | 4 => self.expansion(),
            5 => format!("{{{},{}}}", self.plain(), self.plain()),
            6 => format!("\\{}", self.plain()),
            7 => self
                .numbers
                .pick(&[
                    "$'bb'",
                    "$'\\x62b'",
                    "$'\\142b'",
                    "$'f\\n1'",
                    "$'\\u0062b'",
                    "$'s\\145cret'",
                ])
                .to_owned(),
            8 => self
                .numbers
                .pick(&[
                    "sec*", "s?cret", "[s]ecret", "f[0-9]", "d/*", "*", ".h*", "{1..3}", "~", "~+",
                    "b[b]",
                ])
                .to_owned(),
            9 => self
                .numbers
                .pick(&[
                    "''", "\"\"", "a''b", "b\"b\"", "b\\b", "''bb", "-", "=", "a:~", "#x", "x#",
                ])
                .to_owned(),
            10 => format!("<({})", self.command()),
            _ => self.plain().to_owned(),
        }
    }

    fn expansion(&mut self) -> String {
        if !self.spend() {
            return "$x".to_owned();
        }
        match self.numbers.below(18) {
            0 => format!("$({})", self.command()),
            1 => format!("\"$({})\"", self.command()),
            2 => {
                format!("`{}`", self.numbers.pick(&["aa", "bb x", "echo bb", "echo secret", "gen"]))
            }
            3 => format!("$(({}))", self.arithmetic()),
            4 => format!("${{x:-{}}}", self.plain()),
            5 => format!("${{x:={}}}", self.plain()),
            6 => format!("${{y:+{}}}", self.expansion()),
            7 => self
                .numbers
                .pick(&[
                    "${#x}",
                    "${x%b}",
                    "${x/a/b}",
                    "${x^^}",
                    "${!x}",
                    "${x@P}",
                    "${x:0:1}",
                    "${x[0]}",
                    "${x[@]}",
                    "${!x*}",
                    "${x[*]}",
                    "$(<f1)",
                    "$(<secret)",
                ])
                .to_owned(),
            8 => self
                .numbers
                .pick(&[
                    "$1", "$@", "\"$@\"", "$*", "$#", "$?", "$$", "$-", "$HOME", "$PWD", "$IFS",
                ])
                .to_owned(),
            9 => "\"$x\"".to_owned(),
            10 => "\"${y}\"".to_owned(),
            11 => "$y".to_owned(),
            _ => "$x".to_owned(),
        }
    }

    fn arithmetic(&mut self) -> &'static str {
        self.numbers.pick(&[
            "1",
            "1+2",
            "x",
            "x+1",
            "x++",
            "$x",
            "x=3",
            "a[1]",
            "x[0]",
            "$((1))",
            "y>0",
            "${#x}",
            "a[$x]",
            "(1)",
            "$(echo 1)",
        ])
    }
}
