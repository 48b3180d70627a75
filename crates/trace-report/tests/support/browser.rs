//! Chromium without a window, driven through its debugging pipe: messages are JSON that ends with a zero byte.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trace_report::Report;

const PROGRAMS: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// Machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page open.
pub struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    events: VecDeque<Value>,
    session: Option<String>,
    last: u64,
    folder: tempfile::TempDir,
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TRACE_BROWSER") {
        return Some(PathBuf::from(named));
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    PROGRAMS.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file())
}

impl Browser {
    /// Opens a report in a window of this size. Without a browser: fails where one is required, else says so and
    /// returns nothing.
    pub fn open(report: Report, width: u32, height: u32) -> Option<Self> {
        let Some(program) = find() else {
            assert!(std::env::var_os("TRACE_REQUIRE_BROWSER").is_none(), "no Chromium on this machine");
            let _ = std::io::stderr().write_all(b"SKIPPED: no Chromium on this machine; the page was not tested\n");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut page = Vec::new();
        report.write(&mut page).unwrap();
        std::fs::write(folder.path().join("report.html"), page).unwrap();
        let mut browser = Self::start(&program, folder);
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = browser.call("Target.attachToTarget", &attach)["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Page", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser.resize(width, height);
        browser.load();
        Some(browser)
    }

    fn start(program: &Path, folder: tempfile::TempDir) -> Self {
        // The shell gives the browser our pipes under the numbers it expects.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-extensions", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            loop {
                let mut bytes = Vec::new();
                if output.read_until(0, &mut bytes).unwrap_or(0) == 0 {
                    return;
                }
                bytes.pop();
                if send.send(serde_json::from_slice(&bytes).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, input, messages, events: VecDeque::new(), session: None, last: 0, folder }
    }

    /// Calls a method of the debugging protocol.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.input.flush().unwrap();
        loop {
            let answer = self.messages.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no answer to {method}"));
            if answer["id"] == json!(self.last) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push_back(answer);
        }
    }

    fn load(&mut self) {
        let url = format!("file://{}", self.folder.path().join("report.html").display());
        self.call("Page.navigate", &json!({"url": url}));
        let start = Instant::now();
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            assert!(start.elapsed() < PATIENCE, "the page does not load");
            let event = self.messages.recv_timeout(PATIENCE).unwrap();
            self.events.push_back(event);
        }
        self.settle();
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", &size);
    }

    /// Waits until what was asked for is drawn.
    pub fn settle(&mut self) {
        self.value(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))",
        );
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A number in the page.
    pub fn count(&mut self, selector: &str) -> usize {
        let found = self.value(&format!("document.querySelectorAll({}).length", json!(selector)));
        usize::try_from(found.as_u64().unwrap()).unwrap()
    }

    /// The text of an element.
    pub fn text(&mut self, selector: &str) -> String {
        let found = self.value(&format!("document.querySelector({}).textContent", json!(selector)));
        found.as_str().unwrap().to_owned()
    }

    /// Presses and releases the mouse in the middle of an element.
    pub fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{block: 'center', inline: 'nearest'}}); \
             const r = e.getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; }})()",
            json!(selector)
        ));
        let (x, y) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", &event);
        }
        self.settle();
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "End" => 35,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let mut down = json!({"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code});
        if key.chars().count() == 1 {
            down["text"] = json!(key);
        } else if key == "Enter" {
            down["text"] = json!("\r");
        }
        self.call("Input.dispatchKeyEvent", &down);
        self.call(
            "Input.dispatchKeyEvent",
            &json!({"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code}),
        );
        self.settle();
    }

    /// Types text where the focus is.
    pub fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", &json!({"text": text}));
        self.settle();
    }

    /// Replaces what a field holds, and presses Enter.
    pub fn enter(&mut self, selector: &str, text: &str) {
        self.value(&format!(
            "(() => {{ const e = document.querySelector({}); e.focus(); e.select(); }})()",
            json!(selector)
        ));
        self.type_text(text);
        self.press("Enter");
    }

    /// Keeps a picture of the page among the tests' temporary files.
    pub fn picture(&mut self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
        std::fs::create_dir_all(&folder).unwrap();
        let shot = self.call("Page.captureScreenshot", &json!({"format": "png"}));
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, shot["data"].as_str().unwrap());
        std::fs::write(folder.join(name).with_extension("png"), bytes.unwrap()).unwrap();
    }

    /// Fails if the page complained, asked for anything but itself, or opened a dialog.
    pub fn check_quiet(&mut self) {
        self.settle();
        for event in &self.events {
            let params = &event["params"];
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                    panic!("the page says {params}")
                }
                "Page.javascriptDialogOpening" => panic!("a dialog: {params}"),
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap();
                    assert!(url.starts_with("file://") && url.ends_with("/report.html"), "a request: {url}");
                }
                _ => {}
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
