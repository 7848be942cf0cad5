//! A Postgres server of the test, in a folder of its own, stopped with it.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A running server.
pub(crate) struct Server {
    process: Child,
    folder: PathBuf,
    pub(crate) port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("Debian's postgresql is installed");
    let found = versions
        .filter_map(Result::ok)
        .map(|each| each.path().join("bin").join(name));
    found
        .filter(|path| path.exists())
        .max()
        .expect("the server is installed")
}

/// Returns a command that does not run as root, which the server refuses to be.
fn command(path: &Path) -> Command {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    let is_root = *IS_ROOT.get_or_init(|| {
        let id = Command::new("id").arg("-u").output().expect("`id` runs");
        id.stdout.starts_with(b"0")
    });
    if !is_root {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(path);
    command
}

impl Server {
    pub(crate) fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("vesper-host-postgres-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder can be made");
        let _ = Command::new("chown")
            .arg("postgres:postgres")
            .arg(&folder)
            .status();
        let data = folder.join("data");
        let made = command(&program("initdb"))
            .args([
                "-U",
                "vesper",
                "-A",
                "trust",
                "-N",
                "-E",
                "UTF8",
                "--no-locale",
                "-D",
            ])
            .arg(&data)
            .current_dir(&folder)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind(("127.0.0.1", 0))
            .and_then(|probe| probe.local_addr())
            .expect("a port")
            .port();
        let process = command(&program("postgres"))
            .arg("-D")
            .arg(&data)
            .args([
                "-c",
                &format!("port={port}"),
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "fsync=off",
                "-c",
            ])
            .arg(format!("unix_socket_directories={}", folder.display()))
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self {
            process,
            folder,
            port,
        };
        let until = Instant::now() + Duration::from_mins(1);
        while !server.accepts() {
            assert!(Instant::now() < until, "the server did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn accepts(&self) -> bool {
        let ready = Command::new(program("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .status();
        ready.is_ok_and(|status| status.success())
    }
}
