"""Text of agents as reviewers must see it: characters that do not draw, or that reorder, become marks."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from approvals.previews import pieces

register = template.Library()


@register.filter
def marked(text: str) -> SafeString:
    """The text, escaped, each hidden character as its code point."""
    return format_html_join(
        "",
        "{}",
        (
            [format_html('<mark class="ghost" title="{}">{}</mark>', piece.name, piece.mark) if piece.mark else piece.text]
            for piece in pieces(str(text))
        ),
    )
