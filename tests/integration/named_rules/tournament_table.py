"""Make the table of a tournament from its matches."""

from dataclasses import dataclass


@dataclass
class Match:
    home: str
    away: str
    home_goals: int
    away_goals: int


def tournament_table(matches: list[Match]) -> dict:
    results = []
    for match in matches:
        results.append((match.home, match.home_goals, match.away_goals))
        results.append((match.away, match.away_goals, match.home_goals))
    table = []
    for team in sorted({team for team, _, _ in results}):
        own = [(scored, conceded) for name, scored, conceded in results if name == team]
        won = sum(scored > conceded for scored, conceded in own)
        drawn = sum(scored == conceded for scored, conceded in own)
        table.append(
            {
                "team": team,
                "played": len(own),
                "points": 3 * won + drawn,
                "difference": sum(scored - conceded for scored, conceded in own),
                "goals": sum(scored for scored, _ in own),
            }
        )
    table.sort(key=lambda row: (-row["points"], -row["difference"], -row["goals"], row["team"]))
    return {"table": table, "leader": table[0]["team"] if table else None}
