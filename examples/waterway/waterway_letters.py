"""Letters and notes of the archive in German, French, Spanish and Chinese. They state what no other document says."""

from __future__ import annotations

import datetime as dt

from waterway_files import Block, Document, Heading, Table

_LETTERS: tuple[tuple[str, str, str, dt.date, tuple[Block, ...]], ...] = (
    ("letters/velden-2023.docx", "Brief der Partnerstadt Oberwassen", "Frieda Lohmann", dt.date(2023, 5, 22), (
        "Sehr geehrte Damen und Herren,",
        "unser Stadtrat hat beschlossen, dem Museum des Sarn-Wasserwegs eine Eisensäge aus dem Jahr 1874 zu schenken. "
        "Sie ist drei Meter vierzig lang und wurde von sechs Männern gezogen.",
        "Die Säge reist auf dem Frachtkahn Ned Harrow und soll am 3. Juli ankommen. Den Transport bezahlt die Witwe des "
        "letzten Eismeisters, Frau Adelheid Krumm.",
        "Mit freundlichen Grüßen, Frieda Lohmann, Stadtarchivarin")),
    ("letters/gutachten-tunnel.txt", "Gutachten über die Ziegel im Tunnel", "Dr. Wendelin Staub", dt.date(2024, 8, 8), (
        "Die Ziegel der Tunneldecke wurden an vierzehn Stellen angebohrt.",
        "An drei Stellen ist der Mörtel weich; dort soll vor dem nächsten Winter neu verfugt werden. Der Rest ist gesund.",
        "Bemerkenswert ist, dass die Ziegel mit Roggenmehl im Mörtel gesetzt wurden, was ich sonst nirgends gefunden habe.")),
    ("letters/hotel-kestwold.html", "Beschwerde eines Gastes", "Gernot Pfau", dt.date(2023, 8, 30), (
        "Ich habe zwei Nächte auf dem Ausflugsboot Cloudberry verbracht und nicht geschlafen.",
        "Der Grund: Der Schiffer weckt die Reisenden um halb fünf mit einer Trompete, weil er die Gezeiten seiner Heimat "
        "Husby vermisst.",
        "Ich bitte um die Rückgabe von 84 Kronen.")),
    ("letters/assureur-2024.docx", "Lettre de l'assureur", "Compagnie La Prévoyante", dt.date(2024, 4, 15), (
        "Madame, Monsieur,",
        "Nous avons examiné le dommage causé au bac de Fenmoor le 9 février. Le câble s'est rompu parce qu'un tronc de "
        "peuplier l'a frappé.",
        "Nous vous versons 1 260 couronnes pour le câble et refusons de payer le gâteau dont parle la batelière.",
        "Veuillez agréer nos salutations, Honorine Delabarre, chef du service des sinistres")),
    ("letters/peintre.txt", "Lettre d'un peintre", "Anatole Rivecourt", dt.date(2023, 9, 3), (
        "Cher ami,",
        "J'ai passé l'été à l'écluse Star Lock, où la lumière est la plus belle à six heures du soir.",
        "J'ai vendu ma toile « Le batelier endormi » à la directrice de l'huilerie pour quarante litres d'huile de noix.",
        "Ton Anatole")),
    ("letters/ecole-de-musique.html", "Orgue retrouvé", "École de musique de Saint-Brissac", dt.date(2024, 2, 27), (
        "Notre école a acheté les tuyaux d'orgue que le plongeur a remontés du bassin.",
        Table(("Jeu", "Tuyaux"), (("Bourdon", 49), ("Flûte", 37), ("Trompette", 12))),
        "L'inauguration aura lieu à la Sainte-Cécile. Le facteur d'orgues Blaise Outremer a soudé chaque tuyau à l'étain de "
        "vieux gobelets.")),
    ("letters/consulado.docx", "Carta del cónsul", "Consulado de Puerto Ansares", dt.date(2024, 6, 11), (
        "Estimados señores:",
        "El capitán Evaristo Quiñonero desea donar al museo el cuaderno de bitácora de la gabarra Lucent.",
        "El cuaderno cubre los años 1936 a 1941 y tiene una mancha de chocolate en la página del naufragio.",
        "La única condición es que se exponga abierto por el 12 de marzo, día en que nació su hija a bordo.")),
    ("letters/receta.txt", "Una receta para la revista", "Remedios Alcaraz", dt.date(2023, 11, 2), (
        "La sopa de esclusa se hace con anguila, pan de centeno y una cucharada de vinagre de pera.",
        "Mi abuela la cocinaba en el barco Weigh Anchor Will y la removía siempre con un remo pequeño de cerezo.")),
    ("letters/ingenieria.md", "Informe sobre la bomba", "Talleres Ibarrola", dt.date(2024, 10, 14), (
        "La bomba de la estación de Kestwold fue desmontada el 1 de octubre.",
        "El cojinete inferior estaba gastado porque alguien lo engrasó con mantequilla. El nuevo es de bronce y costó 735 coronas.",
        Table(("Pieza", "Estado"), (("Cojinete inferior", "cambiado"), ("Eje", "bueno"), ("Válvula", "buena"))))),
    ("letters/guest-from-linhe.md", "来自临河的信", "沈雨桐", dt.date(2024, 5, 6), (
        "尊敬的博物馆馆长：",
        "我们临河船史馆收到了贵馆寄来的十二枚过闸铜牌。其中第七枚背面刻着一只蜻蜓，这是贵馆目录里没有写的。",
        "作为回礼，我们将寄去一盏一九零三年的鲤鱼形船灯，由铜匠罗季安修复。",
        "沈雨桐")),
    ("letters/engineer-note.txt", "关于水位的笔记", "方立群", dt.date(2023, 7, 19), (
        "我在昆布水闸学习了三个月，现在记下萨恩水道的一个办法。",
        "看守人在梯级船闸旁放一只空陶罐。水位太高时，陶罐会发出嗡嗡声，于是他不用看水尺就知道要放水。",
        "这只陶罐是看守人的祖母腌咸菜用的。")),
    ("letters/tea-order.html", "茶叶订单", "顾家茶行", dt.date(2024, 9, 25), (
        "贵处茶室订购的茶叶已经装船。",
        Table(("茶", "箱数"), (("松烟茶", 18), ("桂花茶", 7), ("白毫", 4))),
        "松烟茶请存放在干燥的地方。运费由游船公司的奥迪女士支付。")),
)  # fmt: skip


def letters() -> list[Document]:
    """Return the letters."""
    documents = []
    for path, title, author, date, blocks in _LETTERS:
        documents.append(Document(path, title, date, author, blocks))
    return [*documents, *_treaties()]


def _treaties() -> list[Document]:
    """The friendship treaty with the partner town in two languages; only the German one has the second article."""
    english: tuple[Block, ...] = (
        Heading("Article 1"),
        "The Sarn Waterway and the town of Oberwassen send each other one apprentice a year.",
        "Article 2 is in the German text alone.",
    )
    german: tuple[Block, ...] = (
        Heading("Artikel 1"),
        "Der Sarn-Wasserweg und die Stadt Oberwassen schicken einander jedes Jahr einen Lehrling.",
        Heading("Artikel 2"),
        "Wer den anderen bei der Ruderwettfahrt schlägt, stiftet ein Fass Pflaumenwein.",
    )
    date = dt.date(2022, 9, 1)
    return [
        Document("letters/treaty-english.md", "Treaty of friendship", date, "Sarn Waterway Authority", english),
        Document("letters/treaty-german.md", "Freundschaftsvertrag", date, "Stadt Oberwassen", german),
    ]
