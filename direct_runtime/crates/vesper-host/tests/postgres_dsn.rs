//! URLs of databases, as libpq reads them.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use vesper_host::postgres::dsn::{BadDsn, Dsn, Target, TlsMode};

fn resolved(url: &str, environment: &[(&str, &str)]) -> Result<Target, BadDsn> {
    let known: HashMap<&str, &str> = environment.iter().copied().collect();
    Dsn::parse(url)?.resolve(|name| known.get(name).map(|text| (*text).to_owned()))
}

#[test]
fn a_url_names_everything() -> Result<(), BadDsn> {
    let url = "postgresql://ada:p%40ss%2Fword@db.example:6543/orders?sslmode=verify-full&application_name=a%20b\
               &options=-csearch_path%3Dx&connect_timeout=7";
    let target = resolved(url, &[("PGUSER", "ignored")])?;
    let server = target
        .servers
        .first()
        .map(|server| (server.host.as_str(), server.port, server.is_local()));
    assert_eq!(server, Some(("db.example", 6543, false)));
    assert_eq!(
        (target.user.as_str(), target.database.as_str()),
        ("ada", "orders")
    );
    assert_eq!(
        target
            .servers
            .first()
            .and_then(|server| target.password(server))
            .as_deref(),
        Some("p@ss/word")
    );
    assert_eq!(target.tls, TlsMode::VerifyFull);
    assert_eq!(target.options.as_deref(), Some("-csearch_path=x"));
    assert_eq!(target.application_name.as_deref(), Some("a b"));
    assert_eq!(target.connect_timeout.map(|time| time.as_secs()), Some(7));
    Ok(())
}

#[test]
fn the_environment_completes_a_url() -> Result<(), BadDsn> {
    let environment = [
        ("PGHOST", "/run/pg"),
        ("PGPORT", "5433"),
        ("PGUSER", "ada"),
        ("PGSSLMODE", "require"),
    ];
    let target = resolved("postgresql:///orders", &environment)?;
    let server = target
        .servers
        .first()
        .map(|server| (server.host.as_str(), server.port, server.is_local()));
    assert_eq!(server, Some(("/run/pg", 5433, true)));
    assert_eq!(
        (target.user.as_str(), target.database.as_str()),
        ("ada", "orders")
    );
    assert_eq!(target.tls, TlsMode::Require);
    Ok(())
}

#[test]
fn several_servers_share_a_port_or_have_their_own() {
    let hosts = |url| {
        let servers = resolved(url, &[("PGUSER", "a")])
            .map(|target| target.servers)
            .unwrap_or_default();
        servers
            .iter()
            .map(|server| format!("{}:{}", server.host, server.port))
            .collect::<Vec<_>>()
    };
    assert_eq!(hosts("postgresql://a:1,b:2/x"), ["a:1", "b:2"]);
    assert_eq!(hosts("postgresql://[::1]:7/x"), ["::1:7"]);
    assert_eq!(hosts("postgresql://%2Ftmp%2Fpg/x"), ["/tmp/pg:5432"]);
    assert_eq!(hosts("postgresql:///x?host=a,b&port=9"), ["a:9", "b:9"]);
}

#[test]
fn the_name_holds_no_password() {
    let name = Dsn::parse("postgresql://ada:hunter2@h:1/x?password=hunter3")
        .map(|dsn| format!("{} {dsn:?}", dsn.name()));
    assert_eq!(name.as_deref(), Ok("postgresql://h:1/x postgresql://h:1/x"));
}

#[test]
fn what_cannot_be_read_is_refused() {
    for url in [
        "postgresql://h:0/x",
        "postgresql://h:x/x",
        "postgresql://h/x?nonsense=1",
        "postgresql://h/x?sslmode=sometimes",
        "postgresql://h/x?sslmode",
        "postgresql://h/%zz",
        "postgresql://h/%ff",
        "postgresql://ho st/x",
        "postgresql://h/x?connect_timeout=soon",
        "postgresql://a:1,b:2,c:3/x?host=d,e",
        "postgresql://h/x?target_session_attrs=standby",
        "mysql://h/x",
    ] {
        assert!(Dsn::parse(url).is_err(), "{url}");
    }
}

#[test]
fn a_password_file_is_private() {
    let folder = std::env::temp_dir().join(format!("vesper-pgpass-{}", std::process::id()));
    assert!(fs::create_dir_all(&folder).is_ok());
    let path = folder.join("pgpass");
    let lines = "# a comment\nother:*:*:*:wrong\nh:5432:x:ada:a\\:b\\\\c:d\n*:*:*:*:last\n";
    assert!(fs::write(&path, lines).is_ok());
    let file = path.to_string_lossy().into_owned();
    let password = |mode: u32, url: &str| {
        assert!(fs::set_permissions(&path, fs::Permissions::from_mode(mode)).is_ok());
        let target = resolved(url, &[("PGPASSFILE", &file)]).ok()?;
        target.password(target.servers.first()?)
    };
    assert_eq!(
        password(0o600, "postgresql://ada@h/x").as_deref(),
        Some("a:b\\c:d")
    );
    assert_eq!(password(0o600, "postgresql://bob@h/x").as_deref(), Some("last"));
    assert_eq!(password(0o644, "postgresql://ada@h/x"), None);
    assert!(fs::remove_dir_all(&folder).is_ok());
}

#[test]
fn a_parameter_that_is_not_supported_is_named() {
    let refused = Dsn::parse("postgresql://h/x?gssencmode=disable").map(drop);
    let unsupported = Some("gssencmode");
    assert_eq!(refused, Err(BadDsn { unsupported }));
    let refused = Dsn::parse("postgresql://ada:hunter?2=@h/x").map(drop);
    assert_eq!(refused, Err(BadDsn { unsupported: None }));
}
