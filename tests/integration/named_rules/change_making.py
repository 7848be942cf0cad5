"""Make change with the fewest coins, from the largest down, out of a till."""


def change_making(cents: int, till: dict[int, int]) -> dict:
    if any(coin <= 0 or pieces < 0 for coin, pieces in till.items()):
        raise ValueError("a till holds coins of positive value")
    left = cents
    coins = []
    for coin in sorted(till, reverse=True):
        count = min(left // coin, till[coin])
        if count > 0:
            coins.append({"coin": coin, "count": count})
            left -= coin * count
    if left > 0:
        raise ValueError("no_change")
    return {"coins": coins, "count": sum(each["count"] for each in coins)}
