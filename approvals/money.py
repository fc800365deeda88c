"""Amounts as people write them. Pure; the integer in minor units is the amount, this is only its picture."""

# ISO 4217: the currencies whose minor unit is not a hundredth.
NO_DECIMALS = frozenset(
    ["BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF"]
)
THREE_DECIMALS = frozenset(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"])


def amount_text(minor: int | None, currency: str) -> str:
    """`1,999.00` for 199900 in a currency with cents; an empty text for no amount. No float is involved."""
    if minor is None:
        return ""
    places = 0 if currency in NO_DECIMALS else 3 if currency in THREE_DECIMALS else 2
    whole, part = divmod(abs(minor), 10**places)
    sign = "-" if minor < 0 else ""
    return f"{sign}{whole:,}.{part:0{places}d}" if places else f"{sign}{whole:,}"
