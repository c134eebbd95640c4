"""Chinese names of cities, chosen by script among the alternate names of a data package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from outfox.worlds.retrieval.chinese import is_word

_HAN = re.compile(r"[\u4e00-\u9fff]{2,7}")
_TRADITIONAL = (
    "爾馬亞納薩聖羅達奧魯維諾蘭貝庫盧圖烏萊蘇東約韋華岡頓內島茲蓋倫區賈橋傑戸宮齊豊錫紐麥葉開広溫費園寧長沢萬義澤"
    "喬漢歐賽鎮濟賓臘邁賴瑪熱謝興倉灘貢賀靈灣麗慶塚欽間連貴齋輔買會滿設車幾聶營將軍並緬歸來戶済飾樂須晉龍鳳數裡錦"
    "堯諫國勞黒禮廣館徳靜農訥渋吳勢徹縣孫揚詩鈴門鳥樹楊習場雲鐵釧帯櫚綏塢劍沖縄郷焼龐諌實"
)
_SIMPLIFIED = (
    "尔马亚纳萨圣罗达奥鲁维诺兰贝库卢图乌莱苏东约韦华冈顿内岛兹盖伦区贾桥杰户宫齐丰锡纽麦叶开广温费园宁长泽万义泽"
    "乔汉欧赛镇济宾腊迈赖玛热谢兴仓滩贡贺灵湾丽庆冢钦间连贵斋辅买会满设车几聂营将军并缅归来户济饰乐须晋龙凤数里锦"
    "尧谏国劳黑礼广馆德静农讷涩吴势彻县孙扬诗铃门鸟树杨习场云铁钏带榈绥坞剑冲绳乡烧庞谏实"
)
_SIMPLIFY = str.maketrans(_TRADITIONAL, _SIMPLIFIED)


def chinese_name(alternates: Sequence[str]) -> str | None:
    """The alternate in simplified Chinese that most others agree with; None where there is none.

    Ties go to a name that the segmenter's dictionary holds, then to the first.
    """
    votes: Counter[str] = Counter()
    for alternate in alternates:
        if _HAN.fullmatch(alternate):
            name = alternate.translate(_SIMPLIFY)
            stem = name[:-1] if len(name) > 2 and name[-1] in "市縣县" else name
            if _is_simplified(stem):
                votes[stem] += 1
    if not votes:
        return None
    return max(votes, key=lambda name: (is_word(name), votes[name]))


def _is_simplified(name: str) -> bool:
    """GB 2312 holds the simplified characters and no traditional ones."""
    try:
        name.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True
